import CHeap
import Glibc
import NetOptTestSupport

/// The system resources that this process uses now (proc(5)).
package struct ProcessFootprint: Sendable, Equatable {
  /// The number of open descriptors, without the timers of libdispatch (timerfd_create(2)). libdispatch opens
  /// such a timer when it first has to wait for a time, which depends on the timing. netopt opens no such
  /// timer.
  package let descriptors: Int
  /// The names of the threads, without threads that are ending: pthread_join(3) returns before the thread's
  /// entry in /proc disappears.
  package let threadNames: [String]
  /// The resident memory in bytes. Under a sanitizer the allocated memory instead, because the sanitizer's
  /// bookkeeping and the freed memory that it retains would dominate the resident memory.
  package let memoryBytes: Int

  /// The current footprint.
  package static var now: ProcessFootprint {
    let pages = TextFile.read("/proc/self/statm").split(separator: " ").dropFirst().first.flatMap { Int($0) }
    let threads = entries("/proc/self/task").compactMap { threadName($0) }
    return ProcessFootprint(
      // One entry is the descriptor that lists the directory.
      descriptors: entries("/proc/self/fd").count { !isTimer($0) } - 1, threadNames: threads.sorted(),
      memoryBytes: bytesOfSanitizer ?? (pages ?? 0) * sysconf(Int32(_SC_PAGESIZE)))
  }

  /// The memory in bytes that this process has allocated and not freed. Unlike the resident memory, it does
  /// not depend on what the allocator keeps for later.
  package static var allocatedBytes: Int { bytesOfSanitizer ?? netopt_heap_used() }

  /// The allocated memory in bytes, when a sanitizer counts it (sanitizer/allocator_interface.h).
  private static var bytesOfSanitizer: Int? {
    guard let symbol = dlsym(nil, "__sanitizer_get_current_allocated_bytes") else { return nil }
    return unsafeBitCast(symbol, to: (@convention(c) () -> Int).self)()
  }

  /// The name of the thread with this id. `nil` when the thread is ending.
  private static func threadName(_ id: String) -> String? {
    // The format is `ID (NAME) STATE`, six numbers, and the flags. Flag 4 is PF_EXITING.
    let line = TextFile.read("/proc/self/task/\(id)/stat")
    guard let start = line.firstIndex(of: "("), let end = line.lastIndex(of: ")") else { return nil }
    let fields = line[end...].split(separator: " ").dropFirst()
    guard let flags = fields.dropFirst(6).first.flatMap({ Int($0) }), flags & 4 == 0 else { return nil }
    return String(line[line.index(after: start)..<end])
  }

  /// Whether a descriptor of this process, given by its number as text, is a timer (timerfd_create(2)).
  private static func isTimer(_ descriptor: String) -> Bool {
    var target = [UInt8](repeating: 0, count: 64)
    let length = readlink("/proc/self/fd/\(descriptor)", &target, target.count)
    return length > 0 && target.prefix(length).elementsEqual("anon_inode:[timerfd]".utf8)
  }

  /// The names in a directory that do not begin with a dot. Empty when the directory cannot be read.
  private static func entries(_ path: String) -> [String] {
    guard let directory = opendir(path) else { return [] }
    defer { closedir(directory) }
    var names: [String] = []
    while let entry = readdir(directory) {
      let name = withUnsafePointer(to: &entry.pointee.d_name.0) { String(cString: $0) }
      if !name.hasPrefix(".") { names.append(name) }
    }
    return names
  }
}
