/* Numbers as decimals that anybody reads back. */
#ifndef ATT_BASE_DECIMAL_H
#define ATT_BASE_DECIMAL_H

#define ATT_DECIMAL_BYTES 40

/* At most `digits` significant ones, with a point whatever the process's locale; 9 give a
 * float back exactly, 17 a double. Gives `out`. */
const char *att_decimal(char out[ATT_DECIMAL_BYTES], int digits, double value);

#endif
