import NetOpt
import NetOptCore

/// Checks the response to one request. The caller passes it the head (`head`), then each chunk of the body as
/// it arrives (`chunk`), and then the end of a complete body (`end`).
struct Judge {
  /// The plan of the request.
  private let plan: RequestPlan
  /// The `Host` field of the request.
  private let authority: String
  /// The responses that the backend sent for cacheable URLs.
  private let record: CacheRecord
  private let violations: Violations
  /// The expected body; `nil` when the head is too wrong to tell which body belongs to it.
  private var expected: [UInt8]?
  /// The content of the expected body. It tells where in this body wrong bytes belong.
  private var content: Content?
  /// The number of body bytes that have arrived.
  private(set) var position = 0
  /// Whether a byte of the body was wrong. Later chunks are not checked then.
  private var isWrong = false
  /// How the response was delivered, for the text of a violation.
  private var way = ""

  /// - Parameters:
  ///   - authority: the `Host` field of the request.
  ///   - record: the responses that were sent for cacheable URLs.
  init(_ plan: RequestPlan, authority: String, _ record: CacheRecord, _ violations: Violations) {
    self.plan = plan
    self.authority = authority
    self.record = record
    self.violations = violations
  }

  /// Checks the head, and decides which body belongs to it.
  ///
  /// - Parameter generator: gives the plans of other requests. A cached response was sent for one of them.
  mutating func head(_ response: NetOptResponse, _ generator: RequestGenerator) {
    let fields = response.headers
    way = describe(response)
    let mine = fields.filter { $0.name.lowercased().hasPrefix("x-") }
    // Only nginx sends a response without `X-Id`: for a request that it could not pass on, or a body that it
    // rejects.
    guard let id = mine["X-Id"].flatMap({ Int($0) }) else {
      if response.status == 200 || !(400...599).contains(response.status) {
        add(.wrongAnswer, "the answer, \(response.status), has no id; its fields: \(fields.map(\.name))")
      }
      return
    }
    let status = response.cacheStatus
    // Whether the response may be one that the backend sent for another request for the same URL: it comes
    // from the cache, or from the fetch of another call.
    let isShared = plan.answer.cached != nil && (status.isFromCache || status.isCollapsed)
    guard isShared || id == plan.index else {
      return add(.wrongAnswer, "the answer is the one to request \(id)")
    }
    // The plan of the request for which the backend sent the response.
    let asked = isShared ? generator.plan(id) : plan
    if isShared {
      let isSame = asked.answer.target == plan.answer.target && asked.host.name == plan.host.name
      let hasFlavour = plan.answer.cached?.varies != true || asked.flavour == plan.flavour
      guard isSame, hasFlavour else {
        return add(.wrongAnswer, "the cached answer is the one to \(asked)")
      }
    }
    judge(mine, of: asked, response)
    if response.status != plan.answer.status { add(.wrongStatus, "the status is \(response.status)") }
    if !isShared { judgeVersion(response) }
    if let space = plan.answer.cached {
      judgeCached(space, mine["X-Version"], response)
    } else {
      expect(Content.answer(to: plan.index))
    }
    if !plan.answer.hasBody(for: plan.method.rawValue) { expected = [] }
  }

  /// Checks the fields of the response whose names begin with `X-`.
  ///
  /// - Parameters:
  ///   - mine: these fields.
  ///   - asked: the plan of the request for which the backend sent the response.
  private func judge(_ mine: HeaderFields, of asked: RequestPlan, _ response: NetOptResponse) {
    let received = asked.answer.isEarly ? nil : asked.upload.size
    var wanted = AnswerFields.expected(
      index: asked.index, method: asked.method.rawValue, authority: authority, plan: asked.answer,
      received: received)
    if let space = plan.answer.cached {
      wanted.append(HeaderField("X-Version", mine["X-Version"] ?? ""))
      if space.varies { wanted.append(HeaderField("X-Flavour", asked.flavour)) }
    }
    func sorted(_ fields: some Sequence<HeaderField>) -> [String] {
      fields.map { "\($0.name.lowercased()): \($0.value)" }.sorted()
    }
    let (there, expected) = (sorted(mine), sorted(wanted))
    guard there != expected else { return }
    let missing = expected.filter { !there.contains($0) }.map { $0.prefix(80) }
    let surplus = there.filter { !expected.contains($0) }.map { $0.prefix(80) }
    add(.wrongFields, "missing \(missing), not expected \(surplus)")
  }

  /// Checks the HTTP version of a response that came over a connection.
  private func judgeVersion(_ response: NetOptResponse) {
    let isHTTP2 = response.version == .http2
    let isAllowed =
      switch plan.version {
      case .http1: !isHTTP2
      case .http2: isHTTP2
      case .automatic:
        switch plan.host.speaks {
        case .http1: !isHTTP2
        case .http2: isHTTP2
        case .either: true
        }
      }
    if !isAllowed { add(.wrongVersion, "the answer came over HTTP/\(response.version)") }
  }

  /// Checks a response for a cacheable URL: a server sent this version, and the version may come from a cache
  /// and is not too old.
  ///
  /// - Parameter text: the version in the response's field `X-Version`.
  private mutating func judgeCached(_ space: AnswerPlan.Cached, _ text: String?, _ response: NetOptResponse) {
    guard let version = text.flatMap({ Int($0) }) else { return }
    let flavour = space.varies ? plan.flavour : "0"
    let url = authority + plan.answer.target
    expect(Content.cached(url, flavour: flavour, version: version))
    if space.noStore, response.cacheStatus.isFromCache {
      add(.wrongCached, "an answer with no-store was stored")
    }
    let isFresh = response.cacheStatus.outcome != .stale
    guard let sent = record.lastSent(url, flavour: flavour, version: version) else {
      if isFresh { add(.wrongCached, "no server sent version \(version)") }
      return
    }
    let age = SystemTimeSource().now() - sent
    // `max-age` is in whole seconds, and the response needed time to arrive. So a hit may be up to 3 s older
    // than `max-age`.
    if response.cacheStatus.outcome == .hit, age > .seconds(space.maxAge + 3) {
      add(.wrongCached, "a hit is \(age) old")
    }
  }

  /// Sets the body that belongs to the head.
  private mutating func expect(_ content: Content) {
    self.content = content
    expected = content.bytes(plan.answer.size)
  }

  /// Checks the next chunk of the body.
  mutating func chunk(_ bytes: [UInt8]) {
    defer { position += bytes.count }
    guard let expected, let content, !isWrong else { return }
    guard let offset = Content.firstDifference(of: bytes, at: position, from: expected) else { return }
    isWrong = true
    let excerpt = Excerpt.of(bytes, at: offset - position, content)
    add(
      .wrongBody,
      "byte \(offset) of \(expected.count), in a piece of \(bytes.count) from \(position) on: \(excerpt)")
  }

  /// Checks a body that the client reports as complete.
  func end() {
    if isWrong { add(.wrongBody, "the wrong body was taken for whole, with \(position) bytes") }
    guard let expected, !isWrong, position < expected.count else { return }
    add(.shortBody, "\(position) of \(expected.count) bytes were taken for whole")
  }

  /// Describes how the response was delivered: endpoint, HTTP version, reuse of the connection, and cache.
  private func describe(_ response: NetOptResponse) -> String {
    let remote = response.remote.map { "\($0)" } ?? "no endpoint"
    let cache = response.cacheStatus.text ?? "no cache"
    return "\(remote) over HTTP/\(response.version), reused \(response.reused), \(cache)"
  }

  private func add(_ kind: Violation.Kind, _ text: String) {
    violations.add(kind, "\(text); \(plan); by \(way)")
  }
}
