import CHeap
import Glibc
package import NetOptCaching

/// glibc's heap. The program gives it to the cache of a process that runs for long.
package struct SystemHeap: ProcessHeap {
  package let page = sysconf(Int32(_SC_PAGESIZE))

  package init() {}

  /// Gives whole pages that nothing is in back to the system (malloc_trim(3)). It takes in the order of a millisecond for 64 MiB
  /// that are free in the process, and who allocates in the arena that it is at waits for it.
  package func giveBack() -> GivenBackHeap {
    let before = resident()
    malloc_trim(0)
    let after = resident()
    return GivenBackHeap(
      returned: before.flatMap { before in after.map { before - $0 } }, free: netopt_heap_free())
  }

  /// Bytes of resident memory (proc(5), statm); `nil` when that cannot be read.
  private func resident() -> Int? {
    let descriptor = open("/proc/self/statm", O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    var bytes = [UInt8](repeating: 0, count: 128)
    let count = read(descriptor, &bytes, bytes.count)
    let fields = bytes.prefix(max(count, 0)).split(separator: 0x20)
    return fields.count > 1 ? Int(String(decoding: fields[1], as: UTF8.self)).map { $0 * page } : nil
  }
}
