import NetOpt
import NetOptCore

/// The result of a call: a response with its body, or an error.
struct Outcome: Sendable {
  /// The maximum number of bytes that are read of a body. A right response has fewer.
  static let mostBytes = 64 << 10

  private enum Result {
    /// The head, whether the response came from the cache or the server, and the body.
    case answer(ResponseHead, CacheStatus.Outcome, body: [UInt8])
    case failure(NetOptError)
  }

  private let result: Result
  /// The duration of the call, including the reading of the body.
  let time: Duration

  /// Sends the request and waits for the whole result.
  init(of request: NetOptRequest, by client: NetOptClient) async {
    let clock = SystemTimeSource()
    let start = clock.now()
    do throws(NetOptError) {
      let response = try await client.execute(request)
      let source = response.cacheStatus.outcome
      result = .answer(response.head, source, body: try await response.body.collect(upTo: Self.mostBytes))
    } catch {
      result = .failure(error)
    }
    time = clock.now() - start
  }

  /// Whether the result is a response.
  var isAnswer: Bool { if case .answer = result { true } else { false } }

  /// The head of the response; `nil` when the call failed.
  var head: ResponseHead? { if case .answer(let head, _, _) = result { head } else { nil } }

  /// The error; `nil` when the call got a response.
  var error: NetOptError? { if case .failure(let error) = result { error } else { nil } }

  /// Whether the response came from the client's cache: fresh, stale or revalidated.
  var isStored: Bool {
    guard case .answer(_, let source, _) = result else { return false }
    return source != .off && source != .miss
  }

  /// Returns why the outcome is wrong; `nil` when it is right.
  ///
  /// - Parameters:
  ///   - verdict: the results that are allowed.
  ///   - question: the number of the request. A right response contains it.
  ///   - isOfFirstConnection: whether only the first connection to the host misbehaves. A right response over
  ///     a later connection is then right too.
  func fault(
    _ verdict: HostileCase.Verdict, for question: Int, isOfFirstConnection: Bool = false
  ) -> String? {
    switch result {
    case .answer(let head, _, let body):
      if let wanted = verdict.answer { return Self.fault(wanted, head, body, question) }
      let connection = head.first("X-Connection").flatMap { Int($0) } ?? 1
      if isOfFirstConnection, connection > 1 { return Self.fault(.usual, head, body, question) }
      return "wanted \(Self.list(verdict.codes)), got \(head.status) with \(Self.shown(body))"
    case .failure(let error):
      if verdict.codes.contains(error.code) { return nil }
      return
        "wanted \(verdict.codes.isEmpty ? "an answer" : Self.list(verdict.codes)), got \(error.code): \(error)"
    }
  }

  /// The codes in words, for messages.
  private static func list(_ codes: Set<NetOptError.Code>) -> String {
    codes.map(\.description).sorted().joined(separator: " or ")
  }

  /// The length and the beginning of a body, for messages.
  private static func shown(_ body: [UInt8]) -> String {
    "\(body.count) bytes: \(String(decoding: body.prefix(60), as: UTF8.self).debugDescription)"
  }

  /// Returns why a response differs from the only one that is allowed; `nil` when it does not.
  private static func fault(
    _ wanted: ExpectedAnswer, _ head: ResponseHead, _ body: [UInt8], _ question: Int
  ) -> String? {
    let fields = head.fields
    if head.status != wanted.status { return "wanted status \(wanted.status), got \(head.status)" }
    if body != wanted.bytes(for: question) {
      return "wanted the answer to \(question), got \(shown(body)), X-Answer \(fields["X-Answer"] ?? "none")"
    }
    if fields.values(of: "X-Answer") != ["\(question)"] {
      return "wanted X-Answer \(question), got \(fields.values(of: "X-Answer"))"
    }
    for field in fields {
      if let fault = HeaderFields.fault(of: field) {
        return "a field that is none reaches the caller: \(fault)"
      }
    }
    for (name, value) in wanted.fields {
      let values = fields.values(of: name).map { $0.split { $0 == " " || $0 == "\t" }.joined(separator: " ") }
      if !values.isEmpty, values != [value] { return "wanted \(name): \(value), got \(values)" }
    }
    for name in wanted.absent where fields.contains(name: name) { return "\(name) is none of the answer's" }
    return nil
  }
}
