import NetOptCore
import NetOptLocking

/// Records the requests that reached the servers.
package final class Ledger: Sendable {
  private struct State {
    /// The ids that nginx gave to the arrivals of each request, by the index of the request.
    var arrivals: [Int: [String]] = [:]
    var highest = 0
    var pruned = 0
    var total = 0
  }

  /// The number of requests whose arrivals are kept: those of some minutes, which is longer than any call.
  private static let kept = 20_000

  let cache: CacheRecord
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

  /// Records that a request reached a server.
  ///
  /// - Parameter front: nginx's id of the arrival. nginx's log and the backend report the same arrival under
  ///   this id.
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

  /// Records that the backend received a complete request.
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

  /// Reads nginx's access log.
  func read(_ log: AccessLogTail) {
    for line in log.lines() {
      // $request_id $http_x_id $request_method $status
      let words = line.split(separator: " ")
      guard words.count == 4, let index = Int(words[1]) else { continue }
      reached(index, String(words[2]), front: String(words[0]))
    }
  }
}

/// Bytes in readable form.
enum Excerpt {
  /// - Parameter content: the content that the bytes should belong to.
  static func of(_ bytes: [UInt8], at offset: Int, _ content: Content) -> String {
    let there = bytes.dropFirst(offset).prefix(48)
    let position = content.position(of: there).map { "byte \($0) of this content" } ?? "not of this content"
    return "\"\(String(decoding: there, as: UTF8.self))\" is \(position)"
  }
}
