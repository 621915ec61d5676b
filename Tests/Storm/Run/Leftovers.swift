import FoundationEssentials
import NetOptEngine
import NetOptTestSupport
import TestTools

/// What the process holds of the system, to be compared before and after.
struct Leftovers {
  /// What each open descriptor is.
  let descriptors: [String]
  /// The names of threads that are netopt's.
  let threads: [String]
  /// The allocations of libcurl.
  let curl: Int

  static var now: Leftovers {
    let directory = "/proc/self/fd"
    let numbers = (try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []
    return Leftovers(
      descriptors: numbers.compactMap { number in
        // The one that reads the directory is gone again.
        try? FileManager.default.destinationOfSymbolicLink(atPath: "\(directory)/\(number)")
      }.sorted(),
      threads: ProcessFootprint.now.threadNames.filter { $0.hasPrefix("netopt") && $0 != "netopt-storm" },
      curl: CurlAllocations.live)
  }

  /// What is there in addition; empty when nothing is.
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
