/* Finding a family, and the names of its tensors. */
#include "model/arch.h"

#include <stdio.h>
#include <string.h>

#define ATT_ARCH(name) extern const att_arch att_arch_##name;
#include "model/archs.inc"
#undef ATT_ARCH

static const att_arch *const archs[] = {
#define ATT_ARCH(name) &att_arch_##name,
#include "model/archs.inc"
#undef ATT_ARCH
};
enum { N_ARCHS = sizeof archs / sizeof *archs };

static att_status unknown(const char *where, const char *key, const char *value) {
  char known[512] = "";
  for (int i = 0; i < N_ARCHS; i++)
    snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s", i ? ", " : "",
             archs[i]->name);
  return att_fail(ATT_UNSUPPORTED, "%s: %s is \"%s\"; families that attend knows: %s", where, key,
                  value, known);
}

/* The first entry of "architectures", or NULL. */
static att_status class_of(const char **out, const att_json_node *root, const char *where) {
  const att_json_node *list = att_json_member(root, "architectures");
  *out = NULL;
  if (!list || list->type == ATT_JSON_NULL) return ATT_OK;
  if (list->type != ATT_JSON_ARRAY || !list->count || list->child->type != ATT_JSON_STRING)
    return att_fail(ATT_CORRUPT, "%s: \"architectures\" is not a list of names", where);
  *out = list->child->text;
  return ATT_OK;
}

/* True if the family runs that entry of "architectures". */
static bool runs_class(const att_arch *arch, const char *class_name) {
  if (!strcmp(class_name, arch->class_name)) return true;
  for (const char *const *other = arch->others; other && *other; other++)
    if (!strcmp(class_name, *other)) return true;
  return false;
}

att_status att_arch_of_settings(const att_arch **out, const att_json_node *root,
                                const char *where) {
  const att_json_node *type = att_json_member(root, "model_type");
  const char *class_name;
  ATT_TRY(class_of(&class_name, root, where));
  if (type && type->type != ATT_JSON_STRING)
    return att_fail(ATT_CORRUPT, "%s: \"model_type\" is not a string", where);
  if (!type && !class_name)
    return att_fail(ATT_CORRUPT, "%s: neither \"model_type\" nor \"architectures\" is there",
                    where);
  for (int i = 0; i < N_ARCHS; i++) {
    bool by_type = type && !strcmp(type->text, archs[i]->name);
    bool by_class = class_name && runs_class(archs[i], class_name);
    if (type ? !by_type : !by_class) continue;
    if (class_name && !by_class) return unknown(where, "architectures", class_name);
    *out = archs[i];
    return ATT_OK;
  }
  return type ? unknown(where, "model_type", type->text)
              : unknown(where, "architectures", class_name);
}

const att_arch *att_arch_at(int index) { return index < N_ARCHS ? archs[index] : NULL; }

const att_arch *att_arch_of_gguf(att_gguf_text name) {
  for (int i = 0; i < N_ARCHS; i++)
    if (archs[i]->gguf && att_gguf_text_is(name, archs[i]->gguf->name)) return archs[i];
  return NULL;
}

const att_arch *att_arch_named(const char *name) {
  for (int i = 0; i < N_ARCHS; i++)
    if (!strcmp(archs[i]->name, name)) return archs[i];
  return NULL;
}
