import FoundationEssentials
import NetOptEngine
import NetOptTestSupport
import TestTools

/// The system resources that the process holds at one moment. A storm compares those after its end with those
/// before its start.
struct Leftovers {
  /// What each open descriptor leads to: the link target in /proc/self/fd, such as a path or a socket.
  let descriptors: [String]
  /// The names of the threads that netopt started.
  let threads: [String]
  /// The number of allocations that libcurl has not freed.
  let curl: Int

  /// The resources at this moment.
  static var now: Leftovers {
    let directory = "/proc/self/fd"
    let numbers = (try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []
    return Leftovers(
      descriptors: numbers.compactMap { number in
        // The descriptor that lists the directory is closed by now, so its link cannot be read.
        try? FileManager.default.destinationOfSymbolicLink(atPath: "\(directory)/\(number)")
      }.sorted(),
      threads: ProcessFootprint.now.threadNames.filter { $0.hasPrefix("netopt") && $0 != "netopt-storm" },
      curl: CurlAllocations.live)
  }

  /// Describes the kinds of resources of which there are more than in `before`; empty when there are none.
  func additions(to before: Leftovers) -> [String] {
    var faults: [String] = []
    if descriptors.count > before.descriptors.count {
      faults.append("\(descriptors.count) descriptors instead of \(before.descriptors.count): \(descriptors)")
    }
    if threads.count > before.threads.count { faults.append("threads: \(threads)") }
    if curl > before.curl {
      let held = CurlAllocations.descriptions.joined(separator: ", ")
      faults.append("\(curl) allocations of libcurl instead of \(before.curl): \(held)")
    }
    return faults
  }
}
