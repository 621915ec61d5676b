import NetOptCore

/// Draws the requests of a storm.
package struct RequestGenerator: Sendable {
  /// The number of clients.
  static let clients = 5
  /// The number of the first client with a cache. All clients with higher numbers have one too.
  static let firstWithCache = 2
  /// The number of cacheable URLs of each host.
  static let cachedURLs = 12

  /// The seed of the storm.
  let seed: UInt64
  /// Whether this machine has no IPv6. Then another host replaces the one with an IPv6 address (`six.test`).
  var withoutIPv6 = false

  /// Changes each drawn plan.
  private let adapt: @Sendable (inout RequestPlan) -> Void

  package init(seed: UInt64) { self.init(seed: seed) { _ in } }

  /// Makes a generator for requests of one kind.
  ///
  /// - Parameter adapt: changes each drawn plan. It must be deterministic, because several places compute the
  ///   plan of a request independently.
  init(seed: UInt64, adapt: @escaping @Sendable (inout RequestPlan) -> Void) {
    self.seed = seed
    self.adapt = adapt
  }

  /// The methods of requests whose URL is not cacheable. A method is drawn as often as it occurs here.
  private static let methods: [NetOptRequest.Method] = [
    .get, .get, .get, .get, .head, .post, .post, .put, .delete,
  ]

  /// The plan of the request with an index. The same index always gives the same plan.
  package func plan(_ index: Int) -> RequestPlan {
    var random = SplitMix64(seed: seed, stream: 1, index: index)
    var plan = RequestPlan(index: index, host: host(&random))
    plan.client = random.number(in: 0...Self.clients - 1)
    plan.rest = random.number(in: 0...120)
    plan.usesDNS = random.chance(10)
    plan.hedges = random.chance(10)
    plan.decompresses = random.chance(80)
    plan.connection = random.chance(8) ? .fresh : .pooled
    plan.version = version(&random, plan.host)
    if plan.client >= Self.firstWithCache, random.chance(40) {
      drawCached(&random, &plan)
    } else {
      drawOnce(&random, &plan)
    }
    drawEnd(&random, &plan)
    adapt(&plan)
    return plan
  }

  /// Draws the host of a request.
  private func host(_ random: inout SplitMix64) -> StormHost {
    // Half of all requests go to the hosts that share one address and differ in HTTP version.
    let host = random.chance(50) ? StormHost.all[random.number(in: 0...3)] : random.pick(StormHost.all)
    return withoutIPv6 && host.name == "six.test" ? StormHost.all[0] : host
  }

  /// Draws the HTTP version that a request asks for. Some requests insist on HTTP/2 at hosts where they may
  /// get only HTTP/1.1. Such requests may fail (`RequestPlan.mayFail`).
  private func version(_ random: inout SplitMix64, _ host: StormHost) -> RequestOptions.Version {
    switch random.below(100) {
    case ..<20: .http1
    // HTTP/2 is not negotiated without TLS.
    case ..<30 where host.scheme == .https && host.speaks != .http1: .http2
    case ..<31 where host.scheme == .https: .http2
    default: .automatic
    }
  }

  /// Draws the method, the upload and the response of a request whose URL is not cacheable.
  private func drawOnce(_ random: inout SplitMix64, _ plan: inout RequestPlan) {
    plan.method = random.pick(Self.methods)
    if plan.method == .post || plan.method == .put { plan.upload = upload(&random) }
    plan.hasKey = plan.method == .post && random.chance(25)
    plan.answer.status = random.chance(88) ? 200 : random.pick([201, 204, 404, 500, 503])
    plan.answer.size = random.size(upTo: 300_000)
    plan.answer.framing = random.chance(60) ? .length : .chunked
    // Over plain TCP, a client cannot tell whether such a body has ended or was cut off by a fault. So only
    // `https` hosts get it.
    if plan.host.scheme == .https, random.chance(8) { plan.answer.framing = .close }
    plan.answer.delay = random.chance(25) ? random.number(in: 1...60) : random.chance(4) ? 300 : 0
    plan.answer.pauses = random.chance(15) ? random.number(in: 1...5) : 0
    plan.answer.fields = random.number(in: 0...6)
    plan.answer.isCompressed = random.chance(20)
    plan.answer.isEarly = plan.upload.size > 0 && random.chance(6)
    // The backend does not cut a body that ends with the connection, because a client cannot tell the cut
    // from the end.
    if plan.answer.framing != .close, plan.answer.size > 0, random.chance(6) {
      plan.answer.cut = random.number(in: 0...plan.answer.size - 1)
    }
  }

  /// Draws the body of a request.
  private func upload(_ random: inout SplitMix64) -> RequestPlan.Upload {
    let size = random.size(upTo: 300_000)
    guard random.chance(50) else { return size == 0 ? .none : .bytes(size) }
    var stream = RequestPlan.Upload.Stream(
      size: size, chunk: random.number(in: 500...60_000), tellsLength: random.chance(50),
      pause: random.chance(20) ? random.number(in: 1...15) : 0)
    if size > 0, random.chance(6) { stream.failsAt = random.number(in: 0...size - 1) }
    return .stream(stream)
  }

  /// Draws a request for a cacheable URL. The response depends only on the URL, on its version, and, if
  /// the URL varies, on the request's field `X-Flavour` (`flavour`).
  private func drawCached(_ random: inout SplitMix64, _ plan: inout RequestPlan) {
    let number = random.number(in: 0...Self.cachedURLs - 1)
    plan.method = random.chance(90) ? .get : .head
    plan.flavour = "\(random.number(in: 0...2))"
    plan.answer = Self.cachedAnswer(number)
  }

  /// The response of the cacheable URL with this number. It is the same in all storms, whatever the seed.
  static func cachedAnswer(_ number: Int) -> AnswerPlan {
    var properties = SplitMix64(seed: 7, stream: 2, index: number)
    var answer = AnswerPlan()
    answer.cached = AnswerPlan.Cached(
      number: number, maxAge: properties.number(in: 0...3), noStore: properties.chance(15),
      varies: properties.chance(30))
    answer.size = properties.size(upTo: 200_000)
    answer.framing = properties.chance(50) ? .length : .chunked
    answer.pauses = properties.chance(30) ? 3 : 0
    answer.delay = properties.chance(30) ? 20 : 0
    answer.isCompressed = properties.chance(30)
    // The backend cuts only some responses of the URL (`CacheRecord.Answer.breaks`).
    if properties.chance(30), answer.size > 0 {
      answer.cut = properties.number(in: 0...answer.size - 1)
    }
    return answer
  }

  /// Draws what may end the call early or delay it: a short timeout, a cancellation, or how the caller reads
  /// the body.
  private func drawEnd(_ random: inout SplitMix64, _ plan: inout RequestPlan) {
    switch random.below(100) {
    case ..<6: plan.timeout = random.number(in: 1...100)
    case ..<14: plan.cancellation = .after(milliseconds: random.number(in: 0...80))
    case ..<16: plan.cancellation = .atHead
    case ..<18: plan.cancellation = .atByte(random.number(in: 1...50_000))
    case ..<21: plan.reading = .notAtAll
    case ..<26: plan.reading = .slowly(random.number(in: 1...15))
    default: break
    }
  }
}
