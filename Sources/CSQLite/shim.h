// SQLite 3. Swift does not import SQLITE_TRANSIENT, because it is a number cast to a pointer.
#pragma once
#include <sqlite3.h>

// Binds a copy of a text or of bytes to the parameter of a statement: sqlite3_bind_text, sqlite3_bind_blob.
// index: the number of the parameter, from 1. count: the length in bytes. Returns a result code of SQLite.
static inline int netopt_sqlite_bind_text(sqlite3_stmt *statement, int index, const char *text, int count) {
  return sqlite3_bind_text(statement, index, text, count, SQLITE_TRANSIENT);
}
static inline int netopt_sqlite_bind_blob(sqlite3_stmt *statement, int index, const void *bytes, int count) {
  return sqlite3_bind_blob(statement, index, bytes, count, SQLITE_TRANSIENT);
}
