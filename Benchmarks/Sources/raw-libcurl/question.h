// The questions that a stream asks, one after the other, and whether the answers belong to them. A question is a number in the
// URL's query, which the origin puts into its answer. `netopt-benchmark` does the same (Questions.swift).
#pragma once
#include <curl/curl.h>
#include <stddef.h>

// What answers consist of:
// - echo: LENGTH bytes, first the question, then the letter x.
// - words: LENGTH bytes, words of eight bytes, each its own index; the question is in the header field `Question`.
// - anything with a status below 400: nothing is asked.
struct expectation {
  enum { expects_anything, expects_echo, expects_words } kind;
  size_t length;
};

// Reads `echo:BYTES` or `words:BYTES`; gives 0 when it is neither.
int expectation_read(struct expectation *expectation, const char *text);

enum { question_digits = 6, questions_most = 4 };

// No question is asked by two streams, and a stream asks one again only after its others. There are few, since a client that
// parses each URL once is to find it again.
struct questions {
  struct expectation expectation;
  char *urls[questions_most];
  long count;
  long asked;
  // The digits of the last one.
  const char *digits;
  // All of the body, for an echo.
  char *expected;
  size_t received;
  int has_other_content;
};

// Gives 0 without memory.
int questions_init(
    struct questions *questions, const struct expectation *expectation, const char *url, long stream, long streams);
void questions_free(struct questions *questions);

// Puts the next question into a request.
void questions_ask(struct questions *questions, CURL *easy);
void questions_take(struct questions *questions, const char *bytes, size_t count);
int questions_is_answered(const struct questions *questions, CURL *easy, long status);
// Says on standard error what came instead.
void questions_complain(const struct questions *questions, long status);
