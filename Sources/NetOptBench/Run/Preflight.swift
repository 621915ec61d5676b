/// Why a target is not measured.
package struct Exclusion: Hashable, Sendable {
  /// A stable name.
  package let code: String
  /// A short reason for people.
  package let reason: String

  /// Makes an exclusion.
  package init(code: String, reason: String) {
    self.code = code
    self.reason = reason
  }
}

/// Judges what the first request to each target gave.
package enum Preflight {
  /// The most first requests that are under way at once.
  package static let concurrency = 64

  /// Says which targets are left out: those that failed, and those whose status is not the one that most targets
  /// answer with. Only 2xx and 3xx count for that: what an error page takes says nothing about the service.
  ///
  /// - Parameter samples: a sample per target; `nil` for one that was not taken, which excludes nobody.
  /// - Returns: an exclusion per target, or `nil` for a target that is measured.
  package static func exclusions(after samples: [Sample?]) -> [Exclusion?] {
    let expected = commonStatus(samples)
    return samples.map { sample in
      switch sample?.outcome {
      case nil: nil
      case .failed(let failure): Exclusion(code: failure.code, reason: failure.reason)
      case .answered(expected): nil
      case .answered(let status):
        Exclusion(
          code: "status", reason: "answers \(status)" + (expected.map { ", most targets \($0)" } ?? ""))
      }
    }
  }

  /// The status from 200 to 399 that most targets answer with, the lowest of equals.
  private static func commonStatus(_ samples: [Sample?]) -> Int? {
    var counts: [Int: Int] = [:]
    for case .answered(let status)? in samples.map({ $0?.outcome }) where Sample.isFine(status) {
      counts[status, default: 0] += 1
    }
    return counts.min { ($1.value, $0.key) < ($0.value, $1.key) }?.key
  }
}
