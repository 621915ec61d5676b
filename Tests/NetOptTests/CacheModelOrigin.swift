import NetOptCore
import NetOptLocking
import NetOptTestSupport

@testable import NetOpt

/// The origin of `CacheModelTests`. It answers requests at random, records its responses, and checks each
/// response that a caller gets from the cache against this record.
///
/// A response carries a representation: a version of a resource, for one user and one variant. Its fields and
/// its body name the representation. The version of a resource goes up with each successful unsafe request,
/// and with one read in three.
final class CacheModelOrigin: Sendable {
  /// What a request asks for: a target, for a user (`Authorization`) and a variant (`X-Variant`).
  struct Subject: Hashable {
    let target: String
    let user: String
    let variant: String
  }

  /// How long the cache may use one response.
  private struct Answer {
    /// The time of the response, in milliseconds since 1970.
    let given: Int64
    /// How long the response is fresh, in milliseconds; 0 if it must not be used without a request.
    let lifetime: Int64
    /// Whether the cache must not serve the response when it is stale, even if the origin fails.
    let mustRevalidate: Bool
  }

  /// A version of a resource for a subject.
  private struct Representation: Hashable {
    let subject: Subject
    let version: Int
  }

  private struct State {
    var random: SplitMix64
    /// The time of the cache's clock, in milliseconds since 1970. It changes only in `moveClock`.
    var now: Int64 = 1_795_219_200_000
    /// How often `moveClock` has set the clock.
    var settings = 0
    /// The current version of each target.
    var versions: [String: Int] = [:]
    /// The body of each representation that the origin has sent.
    var bodies: [Representation: String] = [:]
    /// The responses that carried or confirmed (304) each representation.
    var answers: [Representation: [Answer]] = [:]
    /// The newest version of each subject that a caller has seen. A later call must not get an older one.
    var floors: [Subject: Int] = [:]
    /// How many callers got each response with `no-store`, by the serial number of the response. Only one
    /// may.
    var unshared: [Int: Int] = [:]
    /// The number of the last response (`X-Serial`).
    var serial = 0
    /// How often each unsafe request arrived, by its `X-Call` field, which is different in each call.
    var changes: [String: Int] = [:]
    /// Descriptions of the faults that were found.
    var faults: [String] = []

    /// Records that a caller has seen a version.
    mutating func raiseFloor(of subject: Subject, to version: Int) {
      floors[subject] = max(floors[subject, default: 0], version)
    }
  }

  private let state: Locked<State>
  /// Whether the cache may refresh stored responses in the background (`stale-while-revalidate`). A refresh
  /// runs on another thread, so requests may arrive in another order than they were sent. The model then does
  /// not check that no call gets an older version than an earlier call.
  let refreshes: Bool
  /// Whether the clock may be set back during calls. The model then does not check the age of responses.
  let setsClockBack: Bool

  /// - Parameter seed: determines all random choices, `refreshes` and `setsClockBack`.
  init(seed: UInt64) {
    state = Locked(State(random: SplitMix64(seed: seed)))
    refreshes = seed % 3 == 0
    setsClockBack = seed % 4 == 1
  }

  /// The time of the cache's clock, in milliseconds since 1970.
  var now: Int64 { state.withLock(\.now) }
  /// How often the clock was set.
  var settings: Int { state.withLock(\.settings) }
  /// Descriptions of the faults that were found.
  var faults: [String] { state.withLock(\.faults) }

  /// Draws a number from 0 to `count` - 1.
  func draw(_ count: UInt64) -> Int { state.withLock { Int($0.random.below(count)) } }
  /// Draws one of the elements.
  func pick<Element>(_ elements: [Element]) -> Element { elements[draw(UInt64(elements.count))] }
  /// Sets the clock forward, or back for a negative number of seconds.
  func moveClock(by seconds: Int64) {
    state.withLock { state in
      state.now += seconds * 1000
      state.settings += 1
    }
  }
  /// Records a fault.
  func report(_ fault: String) { state.withLock { $0.faults.append(fault) } }

  // MARK: Answers

  /// The targets of the requests. Responses for targets that end in `v` depend on the variant, and have
  /// `Vary`. Responses for targets that end in `w` do not depend on the variant, but half of them have
  /// `Vary`. Responses for the `/plain` targets have no `ETag`.
  static let targets = ["/a", "/av", "/aw", "/plain", "/plainv", "/plainw"]
  /// The values of `X-Variant`.
  static let variants = ["v0", "v1"]
  /// The values of `Authorization`; empty for a request without this field.
  static let users = ["", "u0", "u1"]

  /// Whether responses for a target have an `ETag`.
  private static func hasTags(_ target: String) -> Bool { !target.hasPrefix("/plain") }

  /// The subject of a request from the caller's point of view. A caller does not know which responses depend
  /// on the variant, so the variant always counts.
  static func subject(of request: NetOptRequest) -> Subject {
    Subject(
      target: request.url.target, user: request.headers["Authorization"] ?? "",
      variant: request.headers["X-Variant"] ?? "")
  }

  /// The subject of the response to a request. The variant is empty unless responses for the target depend on
  /// it.
  private static func representedSubject(of request: NetOptRequest) -> Subject {
    let subject = subject(of: request)
    return request.url.target.hasSuffix("v")
      ? subject : Subject(target: subject.target, user: subject.user, variant: "")
  }

  /// Answers a request. The origin chooses the response when the request arrives, and delivers it after a
  /// pause. One request in 20 fails before it arrives. One in 20 of the others fails after the response was
  /// chosen.
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

  /// Lets other tasks run, up to 19 times.
  func pause() async { for _ in 0..<draw(20) { await Task.yield() } }

  /// Chooses the response to a request that arrives now.
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

  /// Chooses the response to an unsafe request. A status below 400 means that the request has changed its
  /// resource. One request in three also concerns another resource, which `Content-Location` names.
  /// `X-Version` has the version of each resource.
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

  /// Chooses the response to a GET or HEAD request: an error, a 304, a part or a whole representation.
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

  /// Draws the caching terms of a response, as its `Cache-Control` and for the record.
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

  /// The body of a representation. Its length is drawn at the first use.
  private static func body(of representation: Representation, _ state: inout State) -> String {
    if let known = state.bodies[representation] { return known }
    // The longest bodies exceed `maxEntryBytes` (8,000), so the cache does not store them.
    let length = [0, 10, 300, 9000][Int(state.random.below(4))]
    let subject = representation.subject
    let body =
      "\(subject.target) \(subject.user) \(subject.variant) \(representation.version) "
      + String(repeating: "x", count: length)
    state.bodies[representation] = body
    return body
  }

  /// The bytes 2 to 5 of a body.
  private static func part(of body: String) -> String { String(body.dropFirst(2).prefix(4)) }

  /// Makes a response with its `Content-Length`. A response to HEAD has no body.
  private static func response(
    _ request: NetOptRequest, _ status: Int, _ fields: HeaderFields, _ body: String
  ) -> NetOptResponse {
    var fields = fields
    fields["Content-Length"] = String(body.utf8.count)
    return CacheLab.response(request, status, fields, request.method == .head ? "" : body)
  }

  // MARK: Verdicts

  /// The oldest version that a call may get if it begins now. It is the newest one that a caller has seen.
  func floor(of subject: Subject) -> Int { state.withLock { $0.floors[subject, default: 0] } }

  /// Checks a response that a caller got against the record, and reports faults.
  ///
  /// - Parameters:
  ///   - text: the response's body; `nil` if the caller dropped the body after the head.
  ///   - floor: the value of `floor(of:)` when the call began.
  ///   - settings: the value of `settings` when the call began.
  ///   - context: the beginning of the text of a fault, which names seed, round and call.
  func judge(
    _ response: NetOptResponse, _ text: String?, to request: NetOptRequest, floor: Int, settings: Int,
    _ context: String
  ) {
    let subject = Self.subject(of: request)
    let status = response.cacheStatus
    let context = "\(context) \(request.method.rawValue) \(subject) \(status.text ?? "")"
    let control = request.headers["Cache-Control"] ?? ""
    // The cache made this response itself, because it had no usable response and none came from the origin.
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
      // A request with `no-store` does not change what is stored, so later calls may get an older version.
      if control.contains("no-store"), 200..<300 ~= response.status { return }
      // Without a validator, the cache cannot tell from a response to HEAD that its stored response is
      // outdated. An error may concern only the method HEAD.
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

  /// Raises the floors after a successful unsafe request. The cache must then have invalidated the stored
  /// responses of the request's user and those without a user, each in all variants.
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

  /// The versions in `X-Version`: one for a read, and one for each resource that an unsafe request concerns.
  private static func versions(_ response: NetOptResponse) -> [Int] {
    (response.headers["X-Version"] ?? "").split(separator: " ").compactMap { Int($0) }
  }

  /// Checks status, body and age of a response that carries a representation.
  ///
  /// - Parameters:
  ///   - settings: the value of `settings` when the call began.
  ///   - report: receives the faults.
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
    // If the clock was set during the call, the time at which the cache decided is not known.
    guard settings == state.settings, !setsClockBack else { return }
    // During a retry the monotonic clock advances and the cache's clock does not. So the cache may take a
    // response for younger than it is, by the time of the retry: less than a second.
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

/// A response body that arrives in two parts, with pauses.
private final class PausingBody: BodySource {
  /// The parts that have not arrived, the next one last.
  private let parts: Locked<[[UInt8]]>
  private let origin: CacheModelOrigin
  /// Whether the body fails in place of its second part.
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
