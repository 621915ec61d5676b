import NetOptCore
import NetOptLocking
import NetOptTestSupport

@testable import NetOpt

/// The origin of the cache's model test, and the record of the responses that it has given.
///
/// A response carries a representation: a version of a resource, for one user and one variant. Its fields and
/// its body name the representation. Versions count up in the order in which requests arrive.
final class CacheModelOrigin: Sendable {
  /// The target, user and variant that a request selects.
  struct Subject: Hashable {
    let target: String
    let user: String
    let variant: String
  }

  /// The freshness terms of one response. `given` and `lifetime` are in milliseconds.
  private struct Answer {
    let given: Int64
    let lifetime: Int64
    let mustRevalidate: Bool
  }

  /// A version of a resource for a subject.
  private struct Representation: Hashable {
    let subject: Subject
    let version: Int
  }

  private struct State {
    var random: SplitMix64
    var now: Int64 = 1_795_219_200_000
    /// How often the clock was set.
    var settings = 0
    /// The current version of each target.
    var versions: [String: Int] = [:]
    var bodies: [Representation: String] = [:]
    var answers: [Representation: [Answer]] = [:]
    /// The newest version of each subject that a caller has seen.
    var floors: [Subject: Int] = [:]
    /// How often each response that must not be stored reached a caller, by the response's serial number.
    var unshared: [Int: Int] = [:]
    var serial = 0
    /// How often each unsafe request arrived, by its `X-Call` identifier.
    var changes: [String: Int] = [:]
    var faults: [String] = []

    mutating func raiseFloor(of subject: Subject, to version: Int) {
      floors[subject] = max(floors[subject, default: 0], version)
    }
  }

  private let state: Locked<State>
  /// Whether the cache may refresh stored responses in the background. A refresh runs on another thread, so
  /// requests may arrive in another order than they were sent, and the model can demand no version.
  let refreshes: Bool
  /// Whether the clock may be set back during calls. The age of a response is unknown then.
  let setsClockBack: Bool

  init(seed: UInt64) {
    state = Locked(State(random: SplitMix64(seed: seed)))
    refreshes = seed % 3 == 0
    setsClockBack = seed % 4 == 1
  }

  var now: Int64 { state.withLock(\.now) }
  var settings: Int { state.withLock(\.settings) }
  var faults: [String] { state.withLock(\.faults) }

  func draw(_ count: UInt64) -> Int { state.withLock { Int($0.random.below(count)) } }
  func pick<Element>(_ elements: [Element]) -> Element { elements[draw(UInt64(elements.count))] }
  func moveClock(by seconds: Int64) {
    state.withLock { state in
      state.now += seconds * 1000
      state.settings += 1
    }
  }
  func report(_ fault: String) { state.withLock { $0.faults.append(fault) } }

  // MARK: Answers

  /// The targets. Responses for targets that end in `v` depend on the variant and always send `Vary`.
  /// Responses for targets that end in `w` do not depend on the variant, and half of them send `Vary`. The
  /// `/plain` targets have no validators.
  static let targets = ["/a", "/av", "/aw", "/plain", "/plainv", "/plainw"]
  static let variants = ["v0", "v1"]
  static let users = ["", "u0", "u1"]

  private static func hasTags(_ target: String) -> Bool { !target.hasPrefix("/plain") }

  /// The subject that a call selects. A caller cannot know which responses depend on the variant, so every
  /// field that `Vary` has ever named counts.
  static func subject(of request: NetOptRequest) -> Subject {
    Subject(
      target: request.url.target, user: request.headers["Authorization"] ?? "",
      variant: request.headers["X-Variant"] ?? "")
  }

  /// The subject of the response. Its variant is empty unless the target depends on the variant.
  private static func representedSubject(of request: NetOptRequest) -> Subject {
    let subject = subject(of: request)
    return request.url.target.hasSuffix("v")
      ? subject : Subject(target: subject.target, user: subject.user, variant: "")
  }

  /// Answers a request. The response is fixed when the request arrives, and is delivered later.
  func answer(_ request: NetOptRequest) async throws(NetOptError) -> NetOptResponse {
    if request.headers["Cache-Control"]?.contains("only-if-cached") == true {
      report("\(request.url.target): a request that wants none of the origin was sent")
    }
    if draw(20) == 0 { throw NetOptError(.connectFailed, phase: .connect, "the origin is not there") }
    var response = settle(request)
    await pause()
    if draw(20) == 0 { throw NetOptError(.receiveFailed, phase: .receive, "the connection ended") }
    if draw(3) > 0, let body = response.body.whole, !body.isEmpty {
      response.body = ResponseBody(PausingBody(body, self, isCut: draw(8) == 0))
    }
    return response
  }

  func pause() async { for _ in 0..<draw(20) { await Task.yield() } }

  private func settle(_ request: NetOptRequest) -> NetOptResponse {
    state.withLock { state in
      state.serial += 1
      var fields: HeaderFields = ["X-Serial": String(state.serial)]
      let target = request.url.target
      if target.hasSuffix("v") || target.hasSuffix("w") && state.random.below(2) == 0 {
        fields["Vary"] = "X-Variant"
      }
      return request.method.isSafe
        ? settleRead(request, fields, &state) : Self.settleChange(request, fields, &state)
    }
  }

  /// Some unsafe requests also change another resource, and name it in `Content-Location`.
  private static func settleChange(
    _ request: NetOptRequest, _ fields: HeaderFields, _ state: inout State
  ) -> NetOptResponse {
    var fields = fields
    let status = [200, 204, 303, 409, 500][Int(state.random.below(5))]
    var changed = [request.url.target]
    if state.random.below(3) == 0 {
      let named = targets[Int(state.random.below(UInt64(targets.count)))]
      fields["Content-Location"] = named
      changed.append(named)
    }
    state.changes[request.headers["X-Call"] ?? "", default: 0] += 1
    for target in Set(changed) where status < 400 { state.versions[target, default: 0] += 1 }
    fields["X-Version"] = changed.map { String(state.versions[$0, default: 0]) }.joined(separator: " ")
    return CacheLab.response(request, status, fields)
  }

  private func settleRead(
    _ request: NetOptRequest, _ fields: HeaderFields, _ state: inout State
  ) -> NetOptResponse {
    var fields = fields
    let subject = Self.representedSubject(of: request)
    if state.random.below(3) == 0 { state.versions[subject.target, default: 0] += 1 }
    let version = state.versions[subject.target, default: 0]
    let representation = Representation(subject: subject, version: version)
    fields["X-Version"] = String(version)
    switch state.random.below(12) {
    case 0:
      fields["Cache-Control"] = state.random.below(2) == 0 ? "no-store" : "max-age=600"
      return Self.response(request, [500, 503][Int(state.random.below(2))], fields, "trouble")
    case 1:
      fields["Cache-Control"] = "no-store"
      return Self.response(request, [404, 410, 403][Int(state.random.below(3))], fields, "gone")
    default: break
    }
    let (control, answer) = terms(&state)
    fields["Cache-Control"] = control
    state.answers[representation, default: []].append(answer)
    let tag = "\"\(subject.variant).\(subject.user).\(version)\""
    if Self.hasTags(subject.target) { fields["ETag"] = tag }
    if fields["ETag"] != nil, request.headers["If-None-Match"]?.contains(tag) == true {
      return CacheLab.response(request, 304, fields)
    }
    let body = Self.body(of: representation, &state)
    if request.headers["Range"] == "bytes=2-5", state.random.below(2) == 0 {
      fields["Content-Range"] = "bytes 2-5/\(body.utf8.count)"
      return Self.response(request, 206, fields, Self.part(of: body))
    }
    return Self.response(request, 200, fields, body)
  }

  private func terms(_ state: inout State) -> (control: String, answer: Answer) {
    let lifetime = [0, 5, 600, 3600][Int(state.random.below(4))]
    var control = ["max-age=\(lifetime)"]
    switch state.random.below(refreshes ? 8 : 6) {
    case 0: control.append("must-revalidate")
    case 1: control.append("stale-if-error=1000")
    case 2: control = ["no-store"]
    case 3: control.append("no-cache")
    case 6, 7: control.append("stale-while-revalidate=1000")
    default: break
    }
    let mayBeFresh = Set(control).isDisjoint(with: ["no-store", "no-cache"])
    return (
      control.joined(separator: ", "),
      Answer(
        given: state.now, lifetime: mayBeFresh ? Int64(lifetime) * 1000 : 0,
        mustRevalidate: !mayBeFresh || control.contains("must-revalidate"))
    )
  }

  private static func body(of representation: Representation, _ state: inout State) -> String {
    if let known = state.bodies[representation] { return known }
    // Some bodies are too short to be cut, and some are too long to be stored.
    let length = [0, 10, 300, 9000][Int(state.random.below(4))]
    let subject = representation.subject
    let body =
      "\(subject.target) \(subject.user) \(subject.variant) \(representation.version) "
      + String(repeating: "x", count: length)
    state.bodies[representation] = body
    return body
  }

  private static func part(of body: String) -> String { String(body.dropFirst(2).prefix(4)) }

  private static func response(
    _ request: NetOptRequest, _ status: Int, _ fields: HeaderFields, _ body: String
  ) -> NetOptResponse {
    var fields = fields
    fields["Content-Length"] = String(body.utf8.count)
    return CacheLab.response(request, status, fields, request.method == .head ? "" : body)
  }

  // MARK: Verdicts

  /// The oldest version that a call that begins now may get.
  func floor(of subject: Subject) -> Int { state.withLock { $0.floors[subject, default: 0] } }

  /// Checks a response against the record, and reports faults.
  ///
  /// - Parameters:
  ///   - text: the response's body; `nil` if the caller dropped the body after the head.
  ///   - floor: the subject's floor when the call began.
  ///   - settings: how often the clock had been set when the call began.
  func judge(
    _ response: NetOptResponse, _ text: String?, to request: NetOptRequest, floor: Int, settings: Int,
    _ context: String
  ) {
    let subject = Self.subject(of: request)
    let status = response.cacheStatus
    let context = "\(context) \(request.method.rawValue) \(subject) \(status.text ?? "")"
    let control = request.headers["Cache-Control"] ?? ""
    if response.status == 504, control.contains("only-if-cached") || response.headers["X-Serial"] == nil {
      return
    }
    state.withLock { state in
      var found: [String] = []
      func report(_ fault: String) { found.append("\(context): \(fault)") }
      defer { state.faults += found }
      guard let version = Self.versions(response).first,
        let serial = response.headers["X-Serial"].flatMap({ Int($0) })
      else { return report("an answer that nobody gave: \(response.status)") }
      if !request.method.isSafe {
        if state.changes[request.headers["X-Call"] ?? ""] != 1 { report("a change arrived more than once") }
        if status.isFromCache { report("a change was answered from the cache") }
        if response.status < 400 { Self.raiseFloors(after: request, response, &state) }
        return
      }
      if response.headers["Cache-Control"]?.contains("no-store") == true {
        let count = state.unshared[serial, default: 0] + 1
        state.unshared[serial] = count
        if count > 1 { report("two callers have one answer that must not be stored") }
        if status.isStored || status.outcome == .hit || status.outcome == .stale {
          report("an answer that must not be stored was")
        }
      }
      if control.contains("no-cache"), status.outcome == .hit || status.outcome == .stale {
        report("a reload was answered from the cache")
      }
      if !refreshes, version < floor { report("version \(version) after \(floor)") }
      if response.status == 500 || response.status == 503 { return }
      if [404, 410, 403].contains(response.status) {
        if request.method != .head, let text, text != "gone" { report("an answer of another kind") }
      } else {
        judgeRepresentation(
          response, text, request,
          Representation(subject: Self.representedSubject(of: request), version: version), settings, state,
          report)
      }
      // A request with `no-store` does not change what is stored.
      if control.contains("no-store"), 200..<300 ~= response.status { return }
      // A response to HEAD without a validator does not say which version it carries, and an error may
      // concern the method.
      if request.method == .head, response.status != 200 || !response.headers.contains(name: "ETag") {
        return
      }
      if ![206, 304].contains(response.status) || response.headers.contains(name: "ETag") {
        // A stored response without `Vary` applies to all variants.
        let isForAll = !response.headers.contains(name: "Vary") && status.isStored
        for variant in isForAll ? Self.variants : [subject.variant] {
          state.raiseFloor(
            of: Subject(target: subject.target, user: subject.user, variant: variant), to: version)
        }
      }
    }
  }

  /// Raises the floors after an unsafe request. The request invalidates all variants of its user, and the
  /// entries that were stored without a user.
  private static func raiseFloors(
    after request: NetOptRequest, _ response: NetOptResponse, _ state: inout State
  ) {
    let named = response.headers["Content-Location"].map { [$0] } ?? []
    for (target, version) in zip([request.url.target] + named, versions(response)) {
      for user in [request.headers["Authorization"] ?? "", ""] {
        for variant in variants {
          state.raiseFloor(of: Subject(target: target, user: user, variant: variant), to: version)
        }
      }
    }
  }

  private static func versions(_ response: NetOptResponse) -> [Int] {
    (response.headers["X-Version"] ?? "").split(separator: " ").compactMap { Int($0) }
  }

  private func judgeRepresentation(
    _ response: NetOptResponse, _ text: String?, _ request: NetOptRequest, _ representation: Representation,
    _ settings: Int, _ state: State, _ report: (String) -> Void
  ) {
    let body = state.bodies[representation] ?? ""
    switch response.status {
    case 200: if request.method == .get, let text, text != body { report("another body: \(text.prefix(40))") }
    case 206:
      if request.method == .get, let text, text != Self.part(of: body) {
        report("another part: \(text.prefix(40))")
      }
    case 304:
      if request.headers["If-None-Match"] == nil { report("304 without a condition") }
    default: report("status \(response.status)")
    }
    guard let answers = state.answers[representation] else { return report("a version that nobody gave") }
    // The date of the cache's decision is known only if nobody set the clock during the call.
    guard settings == state.settings, !setsClockBack else { return }
    // A retry takes time on the monotonic clock, but the date stands still here. The response can seem
    // younger by that time.
    let slack: Int64 = 999
    switch response.cacheStatus.outcome {
    case .hit where !answers.contains { state.now - $0.given < $0.lifetime + slack }:
      report("served after its time")
    case .stale where answers.allSatisfy(\.mustRevalidate):
      report("served stale against its word")
    default: break
    }
  }
}

/// A body that arrives in two parts, with pauses, or fails after the first part.
private final class PausingBody: BodySource {
  private let parts: Locked<[[UInt8]]>
  private let origin: CacheModelOrigin
  private let isCut: Bool
  let timings = Timings()

  init(_ body: [UInt8], _ origin: CacheModelOrigin, isCut: Bool) {
    let half = (body.count + 1) / 2
    parts = Locked([Array(body[half...]), Array(body[..<half])])
    self.origin = origin
    self.isCut = isCut
  }

  func next() async throws(NetOptError) -> [UInt8]? {
    await origin.pause()
    let (part, left) = parts.withLock { ($0.popLast(), $0.count) }
    guard let part else { return nil }
    if isCut, left == 0 { throw NetOptError(.receiveFailed, phase: .receive, "the connection ended") }
    return part
  }
}
