/* line_edit.h — reads lines from a person at a terminal, or from a file.
 *
 * At a terminal the usual keys work: arrows, Home and End, Delete, Ctrl-A E K U W,
 * and up and down through earlier lines. The terminal is in its own mode only while
 * a line is read, and gets it back whatever ends the program.
 */
#ifndef ATTEND_CLI_LINE_EDIT_H
#define ATTEND_CLI_LINE_EDIT_H

#include "term.h"

typedef struct line_editor line_editor;

line_editor *line_editor_open(const term *t);
void line_editor_close(line_editor *e);

/* The next line without its newline, borrowed until the next call; NULL at the end
 * (Ctrl-D in an empty line). Ctrl-C gives up a line and asks again. The prompt is
 * shown at a terminal only. */
const char *line_editor_read(line_editor *e, const char *prompt);

#endif
