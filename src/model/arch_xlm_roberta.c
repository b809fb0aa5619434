/* XLM-R: RoBERTa in a hundred languages, with a Unigram tokenizer. */
#include "model/roberta.h"

static const char *const others[] = {"XLMRobertaModel", NULL};

const att_arch att_arch_xlm_roberta = {
    .name = "xlm-roberta",
    .class_name = "XLMRobertaForMaskedLM",
    .others = others,
    .headless = "XLMRobertaModel",
    ATT_ROBERTA,
};
