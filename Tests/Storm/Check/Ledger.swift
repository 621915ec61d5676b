import NetOptCore
import NetOptLocking

/// Records the requests that reached the servers, and checks them: the method, the target, the body, and that
/// a request that must not be repeated arrived only once.
package final class Ledger: Sendable {
  private struct State {
    /// The arrivals of each request, by the index of the request. Each arrival has the id that nginx gave to
    /// it (`$request_id`).
    var arrivals: [Int: [String]] = [:]
    /// The highest index of a request that has arrived.
    var highest = 0
    /// The arrivals of the requests below this index were removed.
    var pruned = 0
    /// The number of arrivals so far.
    var total = 0
  }

  /// The number of requests whose arrivals are kept. A storm takes minutes to send so many, which is longer
  /// than any call lasts.
  private static let kept = 20_000

  /// The responses that the backend sent for cacheable URLs.
  let cache: CacheRecord
  /// Gives the plan of each request.
  private let generator: RequestGenerator
  private let violations: Violations
  private let state = Locked(State())

  package init(_ generator: RequestGenerator, _ violations: Violations) {
    self.generator = generator
    self.violations = violations
    cache = CacheRecord(seed: generator.seed)
  }

  /// The number of requests that reached nginx; repeated requests count each time.
  package var total: Int { state.withLock { $0.total } }

  /// Records that a request reached a server. nginx's log and the backend report each arrival, so most
  /// arrivals are reported twice.
  ///
  /// - Parameters:
  ///   - index: the index of the request.
  ///   - front: the id that nginx gave to the arrival. It is the same in both reports.
  package func reached(_ index: Int, _ method: String, front: String) {
    let arrivals = state.withLock { state in
      var arrivals = state.arrivals[index] ?? []
      if !arrivals.contains(front) {
        arrivals.append(front)
        state.total += 1
        state.arrivals[index] = arrivals
      }
      state.highest = max(state.highest, index)
      while state.pruned < state.highest - Self.kept {
        state.arrivals[state.pruned] = nil
        state.pruned += 1
      }
      return arrivals
    }
    let plan = generator.plan(index)
    if plan.method.rawValue != method {
      violations.add(.wrongRequest, "a server got \(method) of \(plan)")
    }
    if arrivals.count == 2, arrivals.last == front, plan.method == .post, !plan.hasKey {
      violations.add(.sentTwice, "\(plan) reached servers as \(arrivals)")
    }
  }

  /// Checks the target and the body of a request that the backend has received to its end.
  func uploaded(_ index: Int, _ body: [UInt8], target: String) {
    let plan = generator.plan(index)
    if plan.answer.target != target {
      violations.add(.wrongRequest, "a server got \(target) instead of \(plan)")
    }
    let content = Content.upload(of: index)
    let expected = content.bytes(plan.upload.size)
    if let offset = Content.firstDifference(of: body, at: 0, from: expected) {
      violations.add(
        .wrongUpload, "byte \(offset) of \(body.count): \(Excerpt.of(body, at: offset, content)); \(plan)")
    } else if body.count < expected.count {
      violations.add(.wrongUpload, "\(body.count) of \(expected.count) bytes were taken for whole; \(plan)")
    } else if case .stream(let stream) = plan.upload, stream.failsAt != nil {
      violations.add(.wrongUpload, "the stream failed, and its body was taken for whole; \(plan)")
    }
  }

  /// Records the arrivals in the new lines of an nginx's access log.
  func read(_ log: AccessLogTail) {
    for line in log.lines() {
      // $request_id $http_x_id $request_method $status
      let words = line.split(separator: " ")
      guard words.count == 4, let index = Int(words[1]) else { continue }
      reached(index, String(words[2]), front: String(words[0]))
    }
  }
}

/// Shows bytes in the text of a violation.
enum Excerpt {
  /// Describes up to 48 of the bytes: as text, and where in the content they occur.
  ///
  /// - Parameters:
  ///   - offset: the offset of the first byte to describe.
  ///   - content: the content to which the bytes should belong.
  static func of(_ bytes: [UInt8], at offset: Int, _ content: Content) -> String {
    let there = bytes.dropFirst(offset).prefix(48)
    let position = content.position(of: there).map { "byte \($0) of this content" } ?? "not of this content"
    return "\"\(String(decoding: there, as: UTF8.self))\" is \(position)"
  }
}
