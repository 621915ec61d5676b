// The floor that netopt is compared with: requests through plain libcurl, with epoll, CURLOPT_CONNECT_TO and easy
// handles that are used again as they are. No tuning, and nothing of what netopt does beside. Takes the flags of
// `netopt-benchmark requests` and prints the same line.
#define _GNU_SOURCE
#include <curl/curl.h>
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "question.h"

struct options {
  const char *url;
  const char *ca_file;
  struct curl_slist *connect_to;
  long requests;
  long streams;
  // Each request on a new multi handle, so over a new connection, one after the other.
  int is_cold;
  int allows_resumption;
  // The server, which is stopped until all requests wait; 0 for none.
  pid_t server;
  struct expectation expectation;
};

struct stream {
  CURL *easy;
  int64_t started_ns;
  struct questions questions;
};

struct run {
  const struct options *options;
  int epoll;
  CURLM *multi;
  // When libcurl wants to be called, -1 for never. It says so once: what has fired is over (CURLMOPT_TIMERFUNCTION(3)).
  int64_t due_ns;
  long started;
  long finished;
  long failed;
  long wrong;
  int64_t *latencies_us;
  // What all requests took when they waited.
  long waiting_kib;
};

static void die(const char *what) {
  fprintf(stderr, "raw-libcurl: %s\n", what);
  exit(1);
}

static void misused(const char *what) {
  fprintf(stderr,
          "raw-libcurl: %s\n"
          "Usage: raw-libcurl --url URL [--cacert FILE] [--connect-to HOST:PORT:IP:PORT] [-n REQUESTS] [-c STREAMS]\n"
          "                   [--executor loop|pool] [--cold yes|no] [--resumption yes|no]\n"
          "                   [--expect echo:BYTES|words:BYTES]\n",
          what);
  exit(64);
}

static int64_t now_ns(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static size_t receive_body(char *bytes, size_t size, size_t count, void *data) {
  questions_take(&((struct stream *)data)->questions, bytes, size * count);
  return size * count;
}

static int socket_changed(CURL *easy, curl_socket_t descriptor, int what, void *data, void *socket_data) {
  (void)easy;
  struct run *run = data;
  if (what == CURL_POLL_REMOVE) {
    // The descriptor may have been closed already, and has left the set by itself then.
    epoll_ctl(run->epoll, EPOLL_CTL_DEL, descriptor, NULL);
    return 0;
  }
  struct epoll_event event = {.data = {.fd = descriptor}};
  if (what & CURL_POLL_IN) event.events |= EPOLLIN;
  if (what & CURL_POLL_OUT) event.events |= EPOLLOUT;
  if (socket_data == NULL) {
    curl_multi_assign(run->multi, descriptor, run);
    if (epoll_ctl(run->epoll, EPOLL_CTL_ADD, descriptor, &event) != 0) die("epoll_ctl failed");
  } else if (epoll_ctl(run->epoll, EPOLL_CTL_MOD, descriptor, &event) != 0) {
    die("epoll_ctl failed");
  }
  return 0;
}

static int timer_changed(CURLM *multi, long timeout_ms, void *data) {
  (void)multi;
  ((struct run *)data)->due_ns = timeout_ms < 0 ? -1 : timeout_ms == 0 ? 0 : now_ns() + timeout_ms * 1000000;
  return 0;
}

static CURL *make_easy(const struct options *options, struct stream *stream, long number) {
  CURL *easy = curl_easy_init();
  if (easy == NULL) die("curl_easy_init failed");
  if (!questions_init(&stream->questions, &options->expectation, options->url, number)) die("out of memory");
  curl_easy_setopt(easy, CURLOPT_URL, options->url);
  curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_2TLS);
  curl_easy_setopt(easy, CURLOPT_PIPEWAIT, 1L);
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, receive_body);
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, stream);
  curl_easy_setopt(easy, CURLOPT_PRIVATE, stream);
  if (options->ca_file) curl_easy_setopt(easy, CURLOPT_CAINFO, options->ca_file);
  if (options->connect_to) curl_easy_setopt(easy, CURLOPT_CONNECT_TO, options->connect_to);
  if (!options->allows_resumption) curl_easy_setopt(easy, CURLOPT_SSL_SESSIONID_CACHE, 0L);
  return easy;
}

static void open_multi(struct run *run) {
  run->epoll = epoll_create1(EPOLL_CLOEXEC);
  run->multi = curl_multi_init();
  if (run->epoll < 0 || run->multi == NULL) die("no epoll or no multi handle");
  run->due_ns = -1;
  curl_multi_setopt(run->multi, CURLMOPT_SOCKETFUNCTION, socket_changed);
  curl_multi_setopt(run->multi, CURLMOPT_SOCKETDATA, run);
  curl_multi_setopt(run->multi, CURLMOPT_TIMERFUNCTION, timer_changed);
  curl_multi_setopt(run->multi, CURLMOPT_TIMERDATA, run);
  curl_multi_setopt(run->multi, CURLMOPT_MAX_CONCURRENT_STREAMS, 1000L);
  // As many as netopt allows. Without a limit libcurl opens one for each request beyond the streams of the first.
  curl_multi_setopt(run->multi, CURLMOPT_MAX_HOST_CONNECTIONS, 16L);
}

static void close_multi(struct run *run) {
  curl_multi_cleanup(run->multi);
  close(run->epoll);
}

static void start(struct run *run, struct stream *stream) {
  run->started++;
  stream->started_ns = now_ns();
  questions_ask(&stream->questions, stream->easy);
  if (curl_multi_add_handle(run->multi, stream->easy) != CURLM_OK) die("curl_multi_add_handle failed");
}

// Takes what has ended off the multi handle, and begins the next request on each handle.
static void read_messages(struct run *run, long most) {
  int left;
  CURLMsg *message;
  while ((message = curl_multi_info_read(run->multi, &left))) {
    if (message->msg != CURLMSG_DONE) continue;
    CURL *easy = message->easy_handle;
    CURLcode code = message->data.result;
    struct stream *stream;
    long status = 0;
    curl_easy_getinfo(easy, CURLINFO_PRIVATE, (char **)&stream);
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    if (code != CURLE_OK || status >= 400) {
      run->failed++;
    } else if (!questions_is_answered(&stream->questions, easy, status)) {
      if (run->wrong++ == 0) questions_complain(&stream->questions, status);
    }
    run->latencies_us[run->finished++] = (now_ns() - stream->started_ns) / 1000;
    curl_multi_remove_handle(run->multi, easy);
    if (run->started < most) start(run, stream);
  }
}

// Milliseconds until libcurl wants to be called, rounded up; -1 for never.
static int wait_ms(const struct run *run) {
  if (run->due_ns <= 0) return (int)run->due_ns;
  int64_t rest_ns = run->due_ns - now_ns();
  return rest_ns <= 0 ? 0 : (int)((rest_ns + 999999) / 1000000);
}

// Drives the multi handle until so many requests have finished.
static void drive(struct run *run, long most) {
  int running;
  while (run->finished < most) {
    struct epoll_event events[256];
    int count = epoll_wait(run->epoll, events, 256, wait_ms(run));
    if (count < 0 && errno != EINTR) die("epoll_wait failed");
    if (wait_ms(run) == 0) {
      run->due_ns = -1;
      curl_multi_socket_action(run->multi, CURL_SOCKET_TIMEOUT, 0, &running);
    }
    for (int index = 0; index < count; index++) {
      int mask = 0;
      if (events[index].events & EPOLLIN) mask |= CURL_CSELECT_IN;
      if (events[index].events & EPOLLOUT) mask |= CURL_CSELECT_OUT;
      if (events[index].events & (EPOLLERR | EPOLLHUP)) mask |= CURL_CSELECT_ERR;
      curl_multi_socket_action(run->multi, events[index].data.fd, mask, &running);
    }
    read_messages(run, most);
  }
}

static int compare(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

static double seconds(struct timeval time) { return (double)time.tv_sec + (double)time.tv_usec / 1e6; }

static void report(struct run *run, const struct rusage *before, int64_t wall_ns) {
  struct rusage after;
  getrusage(RUSAGE_SELF, &after);
  long count = run->finished;
  qsort(run->latencies_us, (size_t)count, sizeof *run->latencies_us, compare);
  long p50 = count / 2, p99 = (long)(0.99 * (double)count);
  printf("{\"requests\":%ld,\"failed\":%ld,\"wrong\":%ld,\"wall_s\":%.6f,\"cpu_user_s\":%.6f,\"cpu_sys_s\":%.6f,"
         "\"max_rss_kib\":%ld,\"p50_us\":%lld,\"p99_us\":%lld}\n",
         count, run->failed, run->wrong, (double)wall_ns / 1e9, seconds(after.ru_utime) - seconds(before->ru_utime),
         seconds(after.ru_stime) - seconds(before->ru_stime), after.ru_maxrss,
         (long long)run->latencies_us[p50 < count ? p50 : count - 1],
         (long long)run->latencies_us[p99 < count ? p99 : count - 1]);
}

// The resident memory: proc_pid_status(5).
static long resident_kib(void) {
  FILE *file = fopen("/proc/self/status", "r");
  char line[256];
  long kib = 0;
  while (file != NULL && fgets(line, sizeof line, file) != NULL) {
    if (sscanf(line, "VmRSS: %ld", &kib) == 1) break;
  }
  if (file != NULL) fclose(file);
  return kib;
}

// All requests over one multi handle, as many at once as there are streams.
static void run_warm(struct run *run) {
  const struct options *options = run->options;
  long before_kib = resident_kib();
  struct stream *streams = calloc((size_t)options->streams, sizeof *streams);
  if (streams == NULL) die("out of memory");
  for (long index = 0; index < options->streams; index++) {
    streams[index].easy = make_easy(options, &streams[index], index);
  }
  open_multi(run);
  // The first request opens the connection and is not counted.
  start(run, &streams[0]);
  drive(run, 1);
  run->started = run->finished = run->failed = run->wrong = 0;

  struct rusage before;
  getrusage(RUSAGE_SELF, &before);
  int64_t started_ns = now_ns();
  if (options->server > 0) kill(options->server, SIGSTOP);
  for (long index = 0; index < options->streams && run->started < options->requests; index++) {
    start(run, &streams[index]);
  }
  if (options->server > 0) {
    int running;
    curl_multi_socket_action(run->multi, CURL_SOCKET_TIMEOUT, 0, &running);
    run->waiting_kib = resident_kib() - before_kib;
    kill(options->server, SIGCONT);
  }
  drive(run, options->requests);
  report(run, &before, now_ns() - started_ns);

  for (long index = 0; index < options->streams; index++) {
    curl_easy_cleanup(streams[index].easy);
    questions_free(&streams[index].questions);
  }
  close_multi(run);
  free(streams);
}

// Each request with handles of its own, from their making on.
static void run_cold(struct run *run) {
  struct rusage before;
  getrusage(RUSAGE_SELF, &before);
  int64_t started_ns = now_ns();
  for (long index = 0; index < run->options->requests; index++) {
    struct stream stream = {.started_ns = now_ns()};
    int64_t begun_ns = stream.started_ns;
    stream.easy = make_easy(run->options, &stream, index);
    open_multi(run);
    start(run, &stream);
    stream.started_ns = begun_ns;
    drive(run, index + 1);
    curl_easy_cleanup(stream.easy);
    questions_free(&stream.questions);
    close_multi(run);
  }
  report(run, &before, now_ns() - started_ns);
}

static long count(const char *text, const char *option) {
  char *end;
  long number = strtol(text, &end, 10);
  if (*text == 0 || *end != 0 || number < 1) misused(option);
  return number;
}

static int yes(const char *text, const char *option) {
  if (strcmp(text, "yes") == 0) return 1;
  if (strcmp(text, "no") != 0) misused(option);
  return 0;
}

int main(int argument_count, char **arguments) {
  struct options options = {.requests = 10000, .streams = 100, .allows_resumption = 1};
  for (int index = 1; index < argument_count; index += 2) {
    const char *option = arguments[index];
    if (index + 1 == argument_count) misused("the last option wants a value");
    const char *value = arguments[index + 1];
    if (strcmp(option, "--url") == 0) {
      options.url = value;
    } else if (strcmp(option, "--cacert") == 0) {
      options.ca_file = value;
    } else if (strcmp(option, "--connect-to") == 0) {
      options.connect_to = curl_slist_append(options.connect_to, value);
    } else if (strcmp(option, "-n") == 0) {
      options.requests = count(value, "-n wants a number above 0");
    } else if (strcmp(option, "-c") == 0) {
      options.streams = count(value, "-c wants a number above 0");
    } else if (strcmp(option, "--server-pid") == 0) {
      options.server = (pid_t)count(value, "--server-pid wants a number above 0");
    } else if (strcmp(option, "--cold") == 0) {
      options.is_cold = yes(value, "--cold wants yes or no");
    } else if (strcmp(option, "--resumption") == 0) {
      options.allows_resumption = yes(value, "--resumption wants yes or no");
    } else if (strcmp(option, "--expect") == 0) {
      if (!expectation_read(&options.expectation, value)) misused("--expect wants echo:BYTES or words:BYTES");
    } else if (strcmp(option, "--executor") != 0) {
      misused("an option is not understood");
    }
  }
  if (options.url == NULL) misused("--url is missing");

  curl_global_init(CURL_GLOBAL_DEFAULT);
  struct run run = {.options = &options};
  run.latencies_us = calloc((size_t)options.requests + 1, sizeof *run.latencies_us);
  if (run.latencies_us == NULL) die("out of memory");
  if (options.is_cold) {
    run_cold(&run);
  } else {
    run_warm(&run);
  }
  // A line of its own, so that the other one stays as it is; last is what counts.
  if (options.server > 0) {
    printf("{\"requests\":%ld,\"failed\":%ld,\"wrong\":%ld,\"waiting_kib\":%ld}\n", run.finished, run.failed, run.wrong,
           run.waiting_kib);
  }
  free(run.latencies_us);
  curl_slist_free_all(options.connect_to);
  curl_global_cleanup();
  return 0;
}
