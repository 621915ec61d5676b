/// The reason why a run does not measure a target.
package struct Exclusion: Hashable, Sendable {
  /// A code that programs can rely on, such as `status` or `refused`.
  package let code: String
  /// The reason in a few words, for people.
  package let reason: String

  /// Makes an exclusion.
  package init(code: String, reason: String) {
    self.code = code
    self.reason = reason
  }
}

/// Decides by the first response of each target which targets the run measures.
package enum Preflight {
  /// The maximum number of concurrent first requests.
  package static let concurrency = 64

  /// Excludes the targets whose first request failed, and the targets that answer with another status than
  /// most targets. Only a 2xx or 3xx status can be the status of most targets: the response time of an error
  /// page says nothing about the service.
  ///
  /// - Parameter samples: one sample for each target; `nil` when it was not taken. Such a target is not
  ///   excluded.
  /// - Returns: one element for each target: why it is excluded, or `nil` when the run measures it.
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

  /// The most frequent status from 200 to 399, or the lowest of several that are equally frequent; `nil` when
  /// no target answered with such a status.
  private static func commonStatus(_ samples: [Sample?]) -> Int? {
    var counts: [Int: Int] = [:]
    for case .answered(let status)? in samples.map({ $0?.outcome }) where Sample.isSuccess(status) {
      counts[status, default: 0] += 1
    }
    return counts.min { ($1.value, $0.key) < ($0.value, $1.key) }?.key
  }
}
