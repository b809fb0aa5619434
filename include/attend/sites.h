/* attend/sites.h — the places inside a model that have a name.
 *
 * A site is a vector or matrix that the forward pass makes, called as the field
 * calls it ("blocks.1.attn.hook_q"). sites.inc lists all of them with their
 * shapes; layers report to a tap at each one, captures keep what passes there.
 */
#ifndef ATTEND_SITES_H
#define ATTEND_SITES_H

#ifdef __cplusplus
extern "C" {
#endif

typedef enum att_site {
#define ATT_SITE(name, value, text, shape, doc) ATT_SITE_##name = value,
#include "attend/sites.inc"
#undef ATT_SITE
  ATT_SITE_COUNT
} att_site;

#ifdef __cplusplus
}
#endif
#endif
