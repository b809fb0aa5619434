// The part of WASI that attend needs, over files in memory: what it opens by
// name is what the caller put there. Everything else answers "not supported".
const SUCCESS = 0, BADF = 8, NOENT = 44, NOSYS = 52, REGULAR_FILE = 4, FOLDER = 3, ROOT = 3;

export function memoryFiles(memory) {
  const files = new Map(); // name -> Uint8Array
  const open = new Map(); // descriptor -> { bytes, at }
  let next = ROOT + 1;
  const view = () => new DataView(memory().buffer);
  const bytesAt = (at, n) => new Uint8Array(memory().buffer, at, n);
  const nameAt = (at, n) => new TextDecoder().decode(bytesAt(at, n)).replace(/^\/+/, "");
  const isFolder = (name) => name === "" || name === "." ||
    [...files.keys()].some((file) => file.startsWith(name.replace(/\/*$/, "/")));

  function writeStat(at, type, size) {
    bytesAt(at, 64).fill(0);
    view().setUint8(at + 16, type);
    view().setBigUint64(at + 32, BigInt(size), true);
    return SUCCESS;
  }

  // Scattered reading from `file` at `from`; how much goes to `counted`.
  function read(file, from, vectors, n, counted) {
    let done = 0;
    for (let i = 0; i < n; i++) {
      const to = view().getUint32(vectors + 8 * i, true);
      const room = view().getUint32(vectors + 8 * i + 4, true);
      const part = file.bytes.subarray(from + done, from + done + room);
      bytesAt(to, part.length).set(part);
      done += part.length;
    }
    view().setUint32(counted, done, true);
    return done;
  }

  const calls = {
    environ_sizes_get(count, size) {
      view().setUint32(count, 0, true);
      view().setUint32(size, 0, true);
      return SUCCESS;
    },
    environ_get: () => SUCCESS,
    clock_time_get(clock, precision, at) {
      view().setBigUint64(at, BigInt(Math.round(performance.now() * 1e6)), true);
      return SUCCESS;
    },
    fd_prestat_get(fd, at) {
      if (fd !== ROOT) return BADF;
      view().setUint32(at, 0, true);
      view().setUint32(at + 4, 1, true);
      return SUCCESS;
    },
    fd_prestat_dir_name(fd, at) {
      view().setUint8(at, 0x2f);
      return SUCCESS;
    },
    fd_fdstat_get(fd, at) {
      if (fd !== ROOT && !open.has(fd)) return BADF;
      bytesAt(at, 24).fill(0);
      view().setUint8(at, fd === ROOT ? FOLDER : REGULAR_FILE);
      view().setBigUint64(at + 8, 0x1fffffffn, true);
      view().setBigUint64(at + 16, 0x1fffffffn, true);
      return SUCCESS;
    },
    fd_filestat_get: (fd, at) =>
      open.has(fd) ? writeStat(at, REGULAR_FILE, open.get(fd).bytes.length) : BADF,
    path_filestat_get(fd, flags, name, n, at) {
      const path = nameAt(name, n);
      if (files.has(path)) return writeStat(at, REGULAR_FILE, files.get(path).length);
      return isFolder(path) ? writeStat(at, FOLDER, 0) : NOENT;
    },
    path_open(fd, lookup, name, n, flags, rights, inheriting, fdflags, at) {
      const bytes = files.get(nameAt(name, n));
      if (!bytes) return NOENT;
      open.set(next, { bytes, at: 0 });
      view().setUint32(at, next++, true);
      return SUCCESS;
    },
    fd_read(fd, vectors, n, counted) {
      const file = open.get(fd);
      if (!file) return BADF;
      file.at += read(file, file.at, vectors, n, counted);
      return SUCCESS;
    },
    fd_pread(fd, vectors, n, from, counted) {
      if (!open.has(fd)) return BADF;
      read(open.get(fd), Number(from), vectors, n, counted);
      return SUCCESS;
    },
    fd_seek(fd, by, whence, at) {
      const file = open.get(fd);
      if (!file) return BADF;
      file.at = Number(by) + (whence === 0 ? 0 : whence === 1 ? file.at : file.bytes.length);
      view().setBigUint64(at, BigInt(file.at), true);
      return SUCCESS;
    },
    fd_close: (fd) => (open.delete(fd) ? SUCCESS : BADF),
    proc_exit(code) {
      throw new Error(`attend ended with ${code}`);
    },
  };
  return { files, calls: new Proxy(calls, { get: (all, name) => all[name] ?? (() => NOSYS) }) };
}
