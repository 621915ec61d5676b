import Glibc

/// What the process has used so far (getrusage(2)).
struct Cost {
  let userSeconds: Double
  let systemSeconds: Double
  let wallSeconds: Double
  let maxResidentKiB: Int

  static var now: Cost {
    var usage = rusage()
    // RUSAGE_SELF, which Swift imports as another type than the parameter's.
    getrusage(0, &usage)
    let seconds = { (time: timeval) in Double(time.tv_sec) + Double(time.tv_usec) / 1e6 }
    var clock = timespec()
    clock_gettime(CLOCK_MONOTONIC, &clock)
    return Cost(
      userSeconds: seconds(usage.ru_utime), systemSeconds: seconds(usage.ru_stime),
      wallSeconds: Double(clock.tv_sec) + Double(clock.tv_nsec) / 1e9, maxResidentKiB: usage.ru_maxrss)
  }
}
