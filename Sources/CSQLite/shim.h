// SQLite 3. SQLITE_TRANSIENT is a number cast to a pointer, which Swift does not import.
#pragma once
#include <sqlite3.h>

static inline int netopt_sqlite_bind_text(sqlite3_stmt *statement, int index, const char *text, int count) {
  return sqlite3_bind_text(statement, index, text, count, SQLITE_TRANSIENT);
}
static inline int netopt_sqlite_bind_blob(sqlite3_stmt *statement, int index, const void *bytes, int count) {
  return sqlite3_bind_blob(statement, index, bytes, count, SQLITE_TRANSIENT);
}
