#include "models.h"
#include "jsonl.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool ends_with(const char *text, const char *end) {
  size_t n = strlen(text), m = strlen(end);
  return n >= m && strcmp(text + n - m, end) == 0;
}

static const char *base_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

static bool is_folder(const char *path) {
  struct stat info;
  return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

static void add(golden_models *models, const char *path) {
  if (models->n < (int)(sizeof models->path / sizeof *models->path))
    snprintf(models->path[models->n++], GOLDEN_PATH, "%s", path);
}

/* Files named tok… beside a llama2.c checkpoint are its tokenizers. */
static bool is_checkpoint(const char *path) {
  if (ends_with(path, ".gguf")) return true;
  return ends_with(path, ".bin") && strncmp(base_name(path), "tok", 3) != 0;
}

static void look_into(golden_models *models, const char *folder, int depth) {
  struct dirent **names;
  int n = scandir(folder, &names, NULL, alphasort);
  for (int i = 0; i < n; i++) {
    char path[GOLDEN_PATH];
    int length = snprintf(path, sizeof path, "%s/%s", folder, names[i]->d_name);
    bool usable = length < GOLDEN_PATH && names[i]->d_name[0] != '.';
    if (usable && strcmp(names[i]->d_name, "config.json") == 0) add(models, folder);
    if (usable && is_folder(path)) {
      if (depth == 0 && strcmp(names[i]->d_name, "expected") != 0) look_into(models, path, 1);
    } else if (usable && is_checkpoint(path)) {
      add(models, path);
    }
    free(names[i]);
  }
  if (n >= 0) free(names);
}

void golden_find_models(golden_models *out, const char *expected_file) {
  char folder[GOLDEN_PATH];
  snprintf(folder, sizeof folder, "%s", expected_file);
  for (int up = 0; up < 2; up++) *strrchr(folder, '/') = 0; /* the path is absolute */
  out->n = 0;
  look_into(out, folder, 0);
}

const char *golden_model_label(const char *path) { return base_name(path); }

bool golden_is_rounded(const char *path) {
  return ends_with(path, ".gguf") && !strstr(base_name(path), "F32");
}

typedef int64_t ask_fn(const att_json_node *root);

/* What the config.json of a folder or beside a .gguf answers; 0 without one. */
static int64_t ask_config(golden *g, const char *path, ask_fn *ask) {
  char config[GOLDEN_PATH];
  int folder = ends_with(path, ".gguf") ? (int)(base_name(path) - path) : (int)strlen(path);
  if (snprintf(config, sizeof config, "%.*s/config.json", folder, path) >= GOLDEN_PATH) return 0;
  golden_case c = {.g = g, .path = config};
  size_t bytes = 0;
  char *text = golden_slurp(&c, config, &bytes);
  att_json *json;
  int64_t answer = 0;
  if (text && att_json_parse(&json, g->runtime, text, bytes, config) == ATT_OK) {
    answer = ask(att_json_root(json));
    att_json_free(json);
  }
  golden_case_free(&c);
  return answer;
}

/* Whether the config.json beside a .gguf says so. */
static bool config_beside(golden *g, const char *path, ask_fn *ask) {
  return ends_with(path, ".gguf") && ask_config(g, path, ask);
}

static int64_t is_mistral_with_window(const att_json_node *root) {
  const char *type = golden_member_text(root, "model_type");
  const att_json_node *window = att_json_member(root, "sliding_window");
  return type && strcmp(type, "mistral") == 0 && window && window->type == ATT_JSON_NUMBER;
}

static int64_t scales_by_layer(const att_json_node *root) {
  const att_json_node *scales = att_json_member(root, "scale_attn_by_inverse_layer_idx");
  return scales && scales->type == ATT_JSON_BOOL && scales->truth;
}

static int64_t is_tied_t5(const att_json_node *root) {
  const char *type = golden_member_text(root, "model_type");
  const att_json_node *tied = att_json_member(root, "tie_word_embeddings");
  return type && strcmp(type, "t5") == 0 && tied && tied->type == ATT_JSON_BOOL && tied->truth;
}

static int64_t first_position(const att_json_node *root) {
  const char *type = golden_member_text(root, "model_type");
  const att_json_node *padding = att_json_member(root, "pad_token_id");
  if (!type || strcmp(type, "roberta") != 0) return 0;
  return padding && padding->type == ATT_JSON_NUMBER ? padding->integer + 1 : 2;
}

bool golden_factor_is_folded(golden *g, const char *path) {
  return config_beside(g, path, is_tied_t5);
}

int64_t golden_first_position(golden *g, const char *path) {
  return ask_config(g, path, first_position);
}

bool golden_window_is_lost(golden *g, const char *path) {
  return config_beside(g, path, is_mistral_with_window);
}

bool golden_scale_is_folded(golden *g, const char *path) {
  return config_beside(g, path, scales_by_layer);
}

static const char *format_of(const char *path) {
  if (ends_with(path, ".gguf")) return "GGUF";
  return ends_with(path, ".bin") ? "llama2.c" : "Hugging Face";
}

bool golden_timeline_open(golden_timeline *out, golden *g, const char *path, bool tokenizer) {
  *out = (golden_timeline){0};
  if (golden_window_is_lost(g, path)) {
    golden_skip(g, "a GGUF without the window of its config.json");
    return false;
  }
  att_open_options open;
  att_open_options_init(&open);
  open.without_tokenizer = !tokenizer;
  char what[64];
  snprintf(what, sizeof what, "%s model", format_of(path));
  if (!golden_ok(g, att_model_open(&out->model, g->runtime, path, &open), what)) return false;
  att_session_options options;
  att_session_options_init(&options);
  options.all_logits = true;
  if (g->options.block) options.block = g->options.block;
  if (g->options.span) options.span = g->options.span;
  if (golden_ok(g, att_session_create(&out->session, out->model, &options), "session")) return true;
  golden_timeline_close(out);
  return false;
}

void golden_timeline_close(golden_timeline *timeline) {
  att_session_free(timeline->session);
  att_model_close(timeline->model);
}

bool golden_feed(golden *g, att_session *session, const int32_t *ids, int64_t n, att_view logits) {
  int64_t done = 0;
  for (int64_t i = 0; done < n; i++) {
    int64_t piece = golden_piece(g->options.chunk, i, done, n);
    if (!golden_ok(g, att_session_eval(session, ids + done, piece), "att_session_eval"))
      return false;
    att_view got = att_session_logits(session);
    att_view rows = logits.data ? att_view_slice(logits, 0, done, piece) : logits;
    if (rows.data && !golden_ok(g, att_view_copy(&rows, &got), "att_view_copy")) return false;
    done += piece;
  }
  return true;
}
