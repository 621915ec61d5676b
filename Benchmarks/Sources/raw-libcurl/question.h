// The questions that a stream asks, one after the other, and whether the answers belong to them. A question is a number at the
// end of the URL's path, which the origin puts into its answer. `netopt-benchmark` does the same (Question.swift, AnswerCheck.swift).
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

enum { question_digits = 6, questions_count = 16 };

// What one stream asks. All ask the same questions in turn, from different places on, so that two requests at random ask the same
// thing once in `questions_count` times. There are few: a client that parses each URL once is to find it again.
struct questions {
  struct expectation expectation;
  char *urls[questions_count];
  long next;
  // The digits of the last one.
  const char *digits;
  // All of the body, for an echo.
  char *expected;
  size_t received;
  int has_other_content;
};

// Gives 0 without memory.
int questions_init(struct questions *questions, const struct expectation *expectation, const char *url, long stream);
void questions_free(struct questions *questions);

// Puts the next question into a request.
void questions_ask(struct questions *questions, CURL *easy);
void questions_take(struct questions *questions, const char *bytes, size_t count);
int questions_is_answered(const struct questions *questions, CURL *easy, long status);
// Says on standard error what came instead.
void questions_complain(const struct questions *questions, long status);
