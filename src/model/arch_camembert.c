/* CamemBERT: RoBERTa in French. */
#include "model/roberta.h"

static const char *const others[] = {"CamembertModel", NULL};

const att_arch att_arch_camembert = {
    .name = "camembert",
    .class_name = "CamembertForMaskedLM",
    .others = others,
    .headless = "CamembertModel",
    ATT_ROBERTA,
};
