#define _GNU_SOURCE
#include "question.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int expectation_read(struct expectation *expectation, const char *text) {
  const char *colon = strchr(text, ':');
  if (colon == NULL) return 0;
  char *end;
  expectation->length = strtoul(colon + 1, &end, 10);
  if (*end != 0) return 0;
  if (strncmp(text, "echo:", 5) == 0 && expectation->length >= question_digits) {
    expectation->kind = expects_echo;
  } else if (strncmp(text, "words:", 6) == 0 && expectation->length >= 8 && expectation->length % 8 == 0) {
    expectation->kind = expects_words;
  } else {
    return 0;
  }
  return 1;
}

int questions_init(struct questions *questions, const struct expectation *expectation, const char *url, long stream) {
  memset(questions, 0, sizeof *questions);
  questions->expectation = *expectation;
  questions->next = stream;
  if (expectation->kind == expects_anything) return 1;
  for (int index = 0; index < questions_count; index++) {
    if (asprintf(&questions->urls[index], "%s/%0*d", url, question_digits, index) < 0) return 0;
  }
  if (expectation->kind == expects_words) return 1;
  questions->expected = malloc(expectation->length);
  if (questions->expected == NULL) return 0;
  memset(questions->expected, 'x', expectation->length);
  return 1;
}

void questions_free(struct questions *questions) {
  for (int index = 0; index < questions_count; index++) free(questions->urls[index]);
  free(questions->expected);
}

void questions_ask(struct questions *questions, CURL *easy) {
  questions->received = 0;
  questions->has_other_content = 0;
  if (questions->expectation.kind == expects_anything) return;
  const char *url = questions->urls[questions->next % questions_count];
  questions->next += 31;
  curl_easy_setopt(easy, CURLOPT_URL, url);
  questions->digits = url + strlen(url) - question_digits;
  if (questions->expected) memcpy(questions->expected, questions->digits, question_digits);
}

// Whether the eight bytes that begin so far from the body's start are those of their place.
static int is_word(const char *bytes, size_t offset) {
  uint64_t word;
  memcpy(&word, bytes, sizeof word);
  return word == offset / 8;
}

// The first and the last whole word of a chunk. A chunk that is lost, doubled or of another place is found by its ends; all words
// would cost a tenth of the transfer.
static int are_words(const char *bytes, size_t count, size_t offset) {
  size_t skipped = (8 - offset % 8) % 8;
  if (count < skipped + 8) return 1;
  size_t last = skipped + (count - skipped) / 8 * 8 - 8;
  return is_word(bytes + skipped, offset + skipped) && is_word(bytes + last, offset + last);
}

void questions_take(struct questions *questions, const char *bytes, size_t count) {
  size_t offset = questions->received;
  questions->received += count;
  if (questions->expectation.kind == expects_anything || questions->has_other_content) return;
  if (questions->received > questions->expectation.length) {
    questions->has_other_content = 1;
  } else if (questions->expected) {
    questions->has_other_content = memcmp(bytes, questions->expected + offset, count) != 0;
  } else {
    questions->has_other_content = !are_words(bytes, count, offset);
  }
}

int questions_is_answered(const struct questions *questions, CURL *easy, long status) {
  if (questions->expectation.kind == expects_anything) return 1;
  if (questions->has_other_content || status != 200 || questions->received != questions->expectation.length) return 0;
  if (questions->expected) return 1;
  struct curl_header *field;
  return curl_easy_header(easy, "Question", 0, CURLH_HEADER, -1, &field) == CURLHE_OK &&
         strcmp(field->value, questions->digits) == 0;
}

void questions_complain(const struct questions *questions, long status) {
  fprintf(stderr, "raw-libcurl: question %s: status %ld, %zu bytes%s\n", questions->digits, status, questions->received,
          questions->has_other_content ? ", with other content" : "");
}
