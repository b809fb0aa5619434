/* peer_llama.c — models as llama.cpp runs them: peer_llama FOLDER MODEL THREADS.
 *
 * The libraries come from npm's @node-llama-cpp/linux-x64, in FOLDER, and are opened at
 * run time; of their builds the one for this processor is taken, by their own choice.
 * Everything is as llama.cpp has it by default (f16 cache, flash attention where it
 * chooses so), but one pass takes up to 512 tokens. Lines on stdin are answered on
 * stdout as model_worker.h says. */
#include <dirent.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model_worker.h"

/* Parameters are structs that grow with every release. Only their beginning is used:
 * they are returned into memory and passed on the stack, where a longer struct is as
 * good as the right one. */
typedef struct parameters {
  uint32_t first[4]; /* of a context: n_ctx, n_batch, n_ubatch, n_seq_max */
  unsigned char rest[496];
} parameters;

typedef struct batch {
  int32_t n;
  int32_t *tokens;
  void *others[5];
} batch;

static struct {
  void (*backend_init)(void);
  void (*log_set)(void (*)(int, const char *, void *), void *);
  parameters (*model_default_params)(void);
  parameters (*context_default_params)(void);
  void *(*model_load_from_file)(const char *, parameters);
  void *(*init_from_model)(void *, parameters);
  void (*set_n_threads)(void *, int32_t, int32_t);
  void *(*get_memory)(void *);
  void (*memory_clear)(void *, bool);
  bool (*memory_seq_rm)(void *, int32_t, int32_t, int32_t);
  batch (*batch_get_one)(int32_t *, int32_t);
  int32_t (*decode)(void *, batch);
  float *(*get_logits_ith)(void *, int32_t);
  const void *(*model_get_vocab)(const void *);
  int32_t (*vocab_n_tokens)(const void *);
} llama;

static void *context;
static int64_t vocabulary;

static void silent(int level, const char *text, void *payload) {
  (void)level, (void)text, (void)payload;
}

static bool find(void *library, const char *name, void *function) {
  void *symbol = library ? dlsym(library, name) : NULL;
  memcpy(function, &symbol, sizeof symbol);
  if (!symbol) fprintf(stderr, "peer_llama: %s is missing\n", name);
  return symbol != NULL;
}

/* The library whose name begins so: the rest tells the version. */
static void *open_library(const char *folder, const char *begin) {
  char path[1200];
  void *library = NULL;
  DIR *listing = opendir(folder);
  for (struct dirent *entry; listing && !library && (entry = readdir(listing));) {
    if (strncmp(entry->d_name, begin, strlen(begin))) continue;
    snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
    library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
  }
  if (listing) closedir(listing);
  if (!library) fprintf(stderr, "peer_llama: %s cannot be opened in %s\n", begin, folder);
  return library;
}

static bool open_all(const char *folder) {
  void (*load_all)(const char *);
  void *base = open_library(folder, "libggml-base.");
  void *ggml = base ? open_library(folder, "libggml.") : NULL;
  void *library = ggml ? open_library(folder, "libllama.") : NULL;
  if (!library || !find(ggml, "ggml_backend_load_all_from_path", &load_all)) return false;
  bool all = true;
#define FIND(function) all &= find(library, "llama_" #function, &llama.function)
  FIND(backend_init), FIND(log_set), FIND(model_default_params), FIND(context_default_params);
  FIND(model_load_from_file), FIND(init_from_model), FIND(set_n_threads), FIND(get_memory);
  FIND(memory_clear), FIND(memory_seq_rm), FIND(batch_get_one), FIND(decode), FIND(get_logits_ith);
  FIND(model_get_vocab), FIND(vocab_n_tokens);
#undef FIND
  if (!all) return false;
  void (*ggml_log_set)(void (*)(int, const char *, void *), void *);
  if (find(base, "ggml_log_set", &ggml_log_set)) ggml_log_set(silent, NULL);
  load_all(folder);
  llama.log_set(silent, NULL);
  llama.backend_init();
  return true;
}

bool model_open(int argc, char **argv) {
  if (argc < 4 || !open_all(argv[1])) return false;
  void *model = llama.model_load_from_file(argv[2], llama.model_default_params());
  if (!model) return false;
  parameters p = llama.context_default_params();
  p.first[0] = MODEL_CONTEXT;
  p.first[1] = p.first[2] = 512;
  context = llama.init_from_model(model, p);
  vocabulary = llama.vocab_n_tokens(llama.model_get_vocab(model));
  if (context) llama.set_n_threads(context, atoi(argv[3]), atoi(argv[3]));
  return context != NULL;
}

bool model_read(int32_t *tokens, int64_t n) {
  for (int64_t i = 0; i < n; i += 512)
    if (llama.decode(context,
                     llama.batch_get_one(tokens + i, (int32_t)(n - i < 512 ? n - i : 512))))
      return false;
  return true;
}

bool model_forget(int64_t length) {
  if (length) return llama.memory_seq_rm(llama.get_memory(context), 0, (int32_t)length, -1);
  llama.memory_clear(llama.get_memory(context), false);
  return true;
}

const float *model_logits(void) { return llama.get_logits_ith(context, -1); }

int64_t model_vocabulary(void) { return vocabulary; }
