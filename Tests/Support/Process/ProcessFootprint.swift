import NetOptTestSupport
import Glibc

/// What this process takes of the system now (proc(5)).
package struct ProcessFootprint: Sendable, Equatable {
  /// How many descriptors are open, without libdispatch's timers (timerfd_create(2)): it opens one when a timer first
  /// has to wait, which a late one need not. netopt has none.
  package let descriptors: Int
  /// The names of its threads. A thread that is ending is not one: pthread_join(3) returns before its entry in /proc is gone.
  package let threadNames: [String]
  /// The memory that it uses, in bytes: what is resident. Under a sanitizer it is what is allocated, because the
  /// sanitizer's own bookkeeping, and what it keeps of freed memory, would drown the rest.
  package let memoryBytes: Int

  /// The present state.
  package static var now: ProcessFootprint {
    let pages = TextFile.read("/proc/self/statm").split(separator: " ").dropFirst().first.flatMap { Int($0) }
    let threads = entries("/proc/self/task").compactMap { threadName($0) }
    return ProcessFootprint(
      // One of them is the directory's own.
      descriptors: entries("/proc/self/fd").count { !isTimer($0) } - 1, threadNames: threads.sorted(),
      memoryBytes: allocatedBytes ?? (pages ?? 0) * sysconf(Int32(_SC_PAGESIZE)))
  }

  /// What is allocated, when a sanitizer counts it (sanitizer/allocator_interface.h).
  private static var allocatedBytes: Int? {
    guard let symbol = dlsym(nil, "__sanitizer_get_current_allocated_bytes") else { return nil }
    return unsafeBitCast(symbol, to: (@convention(c) () -> Int).self)()
  }

  /// The name of a thread that is not ending.
  private static func threadName(_ id: String) -> String? {
    // `ID (NAME) STATE`, six numbers, and the flags, of which 4 is PF_EXITING.
    let line = TextFile.read("/proc/self/task/\(id)/stat")
    guard let start = line.firstIndex(of: "("), let end = line.lastIndex(of: ")") else { return nil }
    let fields = line[end...].split(separator: " ").dropFirst()
    guard let flags = fields.dropFirst(6).first.flatMap({ Int($0) }), flags & 4 == 0 else { return nil }
    return String(line[line.index(after: start)..<end])
  }

  private static func isTimer(_ descriptor: String) -> Bool {
    var target = [UInt8](repeating: 0, count: 64)
    let length = readlink("/proc/self/fd/\(descriptor)", &target, target.count)
    return length > 0 && target.prefix(length).elementsEqual("anon_inode:[timerfd]".utf8)
  }

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
