/* hostile/manifest.json: malformed files that a loader must refuse, and a few
 * valid ones that it must not.
 *
 * Each row is loaded with an allocator that gives no more than a file of its
 * size can honestly need and is run for one step if it loads. A refusal must
 * come with one line that names the file. "refuse_or_…" and "accept_…_or_refuse"
 * pass either way: what they forbid is a crash. A format that this version
 * does not read would refuse everything; its valid controls tell, and then all
 * its rows are skipped. */
#define _XOPEN_SOURCE 700 /* for P_tmpdir */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "jsonl.h"
#include "models.h"

#define MEMORY_LIMIT ((size_t)256 << 20)

typedef struct hostile_list {
  golden_case *c;
  att_runtime *runtime; /* with the limited allocator */
  const char *folder, *prefix;
  const att_json_node *rows;
  size_t largest; /* allocation asked for by the current row */
} hostile_list;

static void *limited_allocate(size_t bytes, size_t alignment, void *payload) {
  hostile_list *list = payload;
  if (bytes > list->largest) list->largest = bytes;
  if (bytes > MEMORY_LIMIT) return NULL;
  return aligned_alloc(alignment, (bytes / alignment + 1) * alignment);
}

static void limited_release(void *memory, size_t bytes, void *payload) {
  (void)bytes;
  (void)payload;
  free(memory);
}

static att_status open_archive(hostile_list *list, const char *path, const att_json_node *row) {
  (void)row;
  att_archive *archive;
  att_status status = att_archive_open(&archive, list->runtime, path);
  if (status != ATT_OK) return status;
  for (int64_t i = 0; i < att_archive_count(archive); i++) {
    att_view view;
    if (att_archive_get(&view, archive, att_archive_name(archive, i)) == ATT_OK)
      golden_doubles(list->c, &view); /* every element can be read */
  }
  att_archive_close(archive);
  return ATT_OK;
}

/* Opens a model and reads three tokens; logits must be finite. */
static att_status open_model(hostile_list *list, const char *path, const att_json_node *row) {
  (void)row;
  att_open_options options;
  att_open_options_init(&options);
  options.without_tokenizer = true;
  att_model *model;
  att_status status = att_model_open(&model, list->runtime, path, &options);
  if (status != ATT_OK) return status;
  att_session *session = NULL;
  int32_t ids[3] = {0, 1, 0};
  status = att_session_create(&session, model, NULL);
  if (status == ATT_OK) status = att_session_eval(session, ids, 3);
  att_view logits = status == ATT_OK ? att_session_logits(session) : att_view_none();
  if (logits.data) {
    double *values = golden_doubles(list->c, &logits);
    for (int64_t i = 0; i < att_view_count(&logits); i++)
      if (!isfinite(values[i])) {
        golden_fail(list->c->g, "loads, but logit %lld is %g", (long long)i, values[i]);
        break;
      }
  }
  att_session_free(session);
  att_model_close(model);
  return status;
}

/* Opens a tokenizer and encodes a text: a small vocabulary may refuse it, but
 * nothing worse. */
static att_status open_tokenizer(hostile_list *list, const char *path, const att_json_node *row) {
  const att_json_node *of_llama2c = att_json_member(row, "tokenizer");
  const char *text = golden_member_text(row, "try_text");
  if (!text) text = "Once upon a time";
  att_tokenizer *tokenizer;
  att_status status = att_tokenizer_open(&tokenizer, list->runtime, path, of_llama2c ? 512 : 0);
  if (status != ATT_OK) return status;
  att_encoding *encoding;
  if (att_encode(&encoding, tokenizer, text, strlen(text), NULL) == ATT_OK)
    att_encoding_free(encoding);
  att_tokenizer_free(tokenizer);
  return ATT_OK;
}

static att_status open_llama2c(hostile_list *list, const char *path, const att_json_node *row) {
  return att_json_member(row, "tokenizer") ? open_tokenizer(list, path, row)
                                           : open_model(list, path, row);
}

static bool copy_file(golden_case *c, const char *from, const char *to) {
  size_t bytes = 0;
  char *content = golden_slurp(c, from, &bytes);
  FILE *file = content ? fopen(to, "wb") : NULL;
  if (!file) return false;
  bool whole = fwrite(content, 1, bytes, file) == bytes;
  return fclose(file) == 0 && whole;
}

/* A Hugging Face folder made of the row's config.json and the weights that it
 * names, relative to the group's parent. */
static att_status open_config(hostile_list *list, const char *path, const att_json_node *row) {
  char folder[] = P_tmpdir "/golden-XXXXXX", config[64], weights[64], from[GOLDEN_PATH];
  const char *name = golden_member_text(row, "weights");
  if (!mkdtemp(folder)) return ATT_UNSUPPORTED;
  snprintf(from, sizeof from, "%s/../%s", list->folder, name ? name : "");
  snprintf(config, sizeof config, "%s/config.json", folder);
  snprintf(weights, sizeof weights, "%s/model.safetensors", folder);
  att_status status = ATT_UNSUPPORTED;
  if (copy_file(list->c, path, config) && copy_file(list->c, from, weights))
    status = open_model(list, folder, row);
  unlink(config);
  unlink(weights);
  rmdir(folder);
  return status;
}

typedef att_status open_fn(hostile_list *list, const char *path, const att_json_node *row);

static open_fn *opener(const char *format) {
  static const struct {
    const char *format;
    open_fn *open;
  } openers[] = {{"safetensors", open_archive}, {"npy", open_archive},
                 {"llama2c", open_llama2c},     {"gguf", open_model},
                 {"config", open_config},       {"tokenizer", open_tokenizer}};
  for (size_t i = 0; i < sizeof openers / sizeof *openers; i++)
    if (format && strcmp(format, openers[i].format) == 0) return openers[i].open;
  return NULL;
}

static void path_of(char out[GOLDEN_PATH], const hostile_list *list, const att_json_node *row) {
  const char *file = golden_member_text(row, "file");
  snprintf(out, GOLDEN_PATH, "%s/%s", list->folder, file ? file : "");
}

/* True unless a valid control of that format is UNSUPPORTED. */
static bool format_is_read(hostile_list *list, const char *format) {
  for (const att_json_node *row = list->rows; row; row = row->next) {
    const char *same = golden_member_text(row, "format"), *must = golden_member_text(row, "must");
    if (!same || !must || strcmp(same, format) != 0 || strcmp(must, "accept") != 0) continue;
    char path[GOLDEN_PATH];
    path_of(path, list, row);
    if (opener(format)(list, path, row) == ATT_UNSUPPORTED) return false;
  }
  return true;
}

/* One line that names the file, or the folder in it that the case is. */
static void check_message(golden *g, const char *path) {
  const char *message = att_message(), *slash = strrchr(path, '/');
  char folder[GOLDEN_PATH] = "";
  for (const char *at = path; at < slash; at++)
    if (*at == '/') snprintf(folder, sizeof folder, "%.*s", (int)(slash - at - 1), at + 1);
  bool named = strstr(message, slash + 1) || strstr(message, folder);
  if (!*message || strchr(message, '\n') || !named)
    golden_fail(g, "refused, but the message does not name the file in one line: \"%s\"", message);
}

static void judge(hostile_list *list, const att_json_node *row, const char *path,
                  att_status status) {
  golden *g = list->c->g;
  const char *must = golden_member_text(row, "must"), *what = golden_member_text(row, "what");
  if (!must) must = "";
  if (!what) what = "";
  if (list->largest > MEMORY_LIMIT)
    golden_fail(g, "%s: asked for %zu bytes of memory", what, list->largest);
  if (strcmp(must, "refuse") == 0 && status == ATT_OK)
    golden_fail(g, "%s: got accepted, want refused", what);
  if (strcmp(must, "accept") == 0 && status != ATT_OK)
    golden_fail(g, "%s: got %s, want accepted: %s", what, att_status_name(status), att_message());
  if (status != ATT_OK && strcmp(golden_member_text(row, "format"), "config") != 0)
    check_message(g, path);
}

/* The folder of a config row's weights with the config that belongs to them:
 * where that is not there or of a family not read yet, nothing can be judged. */
static const char *weights_missing(hostile_list *list, const att_json_node *row) {
  const char *name = golden_member_text(row, "weights");
  if (!name) return NULL;
  char folder[GOLDEN_PATH];
  snprintf(folder, sizeof folder, "%s/../%s", list->folder, name);
  if (access(folder, R_OK) != 0) return "weights are absent";
  *strrchr(folder, '/') = 0;
  return open_model(list, folder, row) == ATT_UNSUPPORTED ? "family not read yet" : NULL;
}

static void run_row(hostile_list *list, const att_json_node *row) {
  const char *format = golden_member_text(row, "format");
  char path[GOLDEN_PATH];
  path_of(path, list, row);
  if (list->prefix && strncmp(path, list->prefix, strlen(list->prefix)) != 0) return;
  if (access(path, R_OK) != 0 || !golden_begin(list->c->g, path, "")) return;
  open_fn *open = opener(format);
  const char *missing = "format not read yet";
  if (open && format_is_read(list, format)) missing = weights_missing(list, row);
  if (missing) {
    golden_skip(list->c->g, "hostile %s: %s", format ? format : "row", missing);
  } else {
    list->largest = 0;
    judge(list, row, path, open(list, path, row));
  }
  golden_end(list->c->g);
}

static bool is_list(const att_json_node *root) {
  return root->type == ATT_JSON_ARRAY && root->child && att_json_member(root->child, "must");
}

static void run_list(golden_case *c, const att_json_node *root, const char *folder,
                     const char *prefix) {
  hostile_list list = {.c = c, .folder = folder, .prefix = prefix, .rows = root->child};
  att_runtime_options options;
  att_runtime_options_init(&options);
  options.threads = 1;
  options.target = c->g->options.target;
  options.allocator = (att_allocator){limited_allocate, limited_release, &list};
  if (att_runtime_create(&list.runtime, &options) != ATT_OK) {
    fprintf(stderr, "golden: %s\n", att_message());
    return;
  }
  for (const att_json_node *row = root->child; row; row = row->next) run_row(&list, row);
  att_runtime_free(list.runtime);
}

bool golden_hostile_folder(golden *g, const char *folder, const char *prefix) {
  char path[GOLDEN_PATH];
  snprintf(path, sizeof path, "%s/manifest.json", folder);
  golden_case c = {.g = g, .path = path};
  size_t bytes = 0;
  char *text = golden_slurp(&c, path, &bytes);
  att_json *json;
  bool found = false;
  if (text && att_json_parse(&json, g->runtime, text, bytes, path) == ATT_OK) {
    found = is_list(att_json_root(json));
    if (found) run_list(&c, att_json_root(json), folder, prefix);
    att_json_free(json);
  }
  golden_case_free(&c);
  return found;
}
