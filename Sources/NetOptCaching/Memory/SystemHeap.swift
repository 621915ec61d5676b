import CHeap
import Glibc

/// The heap of the process.
enum SystemHeap {
  /// The bytes of a page, the least that is given back.
  static let page = sysconf(Int32(_SC_PAGESIZE))

  /// What came of giving back.
  struct GivenBack: Sendable {
    /// By how many bytes the process's resident memory has shrunk; `nil` when that cannot be known.
    var returned: Int?
    /// How many bytes of its heap are free, resident or not.
    var free: Int
  }

  /// Gives whole pages that nothing is in back to the system (malloc_trim(3)). It takes in the order of a millisecond for 64 MiB
  /// that are free in the process, and who allocates in the arena that it is at waits for it.
  static func giveBack() -> GivenBack {
    let before = resident()
    malloc_trim(0)
    let after = resident()
    return GivenBack(
      returned: before.flatMap { before in after.map { before - $0 } }, free: netopt_heap_free())
  }

  /// Bytes of resident memory (proc(5), statm); `nil` when that cannot be read.
  private static func resident() -> Int? {
    let descriptor = open("/proc/self/statm", O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    var bytes = [UInt8](repeating: 0, count: 128)
    let count = read(descriptor, &bytes, bytes.count)
    let fields = bytes.prefix(max(count, 0)).split(separator: 0x20)
    return fields.count > 1 ? Int(String(decoding: fields[1], as: UTF8.self)).map { $0 * page } : nil
  }
}
