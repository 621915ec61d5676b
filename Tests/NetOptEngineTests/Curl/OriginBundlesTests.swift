import NetOptCore
import Testing

@testable import NetOptEngine

@Suite("Connections of different origins or versions share no bundle") struct OriginBundlesTests {
  // Two endpoints of each origin.
  private let a = IPEndpoint(IPAddress(v4: 0x7f00_0001), port: 443)
  private let b = IPEndpoint(IPAddress(v4: 0x7f00_0002), port: 443)
  private let start = MonotonicInstant(nanoseconds: 0)

  @Test("each origin has a separate bundle for each offer of HTTP versions")
  func apart() {
    let origins = (0..<50).map { OriginBundles(of: Origin(.https, host: "h\($0).test"), .plain) }
    var classes: Set<ConnectionClass> = []
    for bundles in origins {
      for version in [RequestOptions.Version.automatic, .http1] {
        classes.insert(bundles.connectionClass(for: version, to: a, at: start))
      }
    }
    #expect(classes.count == 100)
    #expect(Set(classes.map(\.bundle)).count == 100)
  }

  @Test("after the loss of an idle connection, half of its idle time is the limit for 10 minutes")
  func idleConnections() {
    let bundles = OriginBundles(of: Origin(.https, host: "one.test"), .plain)
    #expect(bundles.idleLimit(of: a, at: start) == nil)
    bundles.noteIdleLoss(of: a, idleFor: .seconds(90), at: start)
    #expect(bundles.idleLimit(of: a, at: start) == .seconds(45))
    #expect(bundles.idleLimit(of: b, at: start) == nil)
    // The limit is half of the shortest idle time after which a connection was lost. Idle times of less than
    // 200 ms do not count, because such a loss has another cause. Losses at a proxy (`nil`) do not count.
    bundles.noteIdleLoss(of: a, idleFor: .seconds(40), at: start + .seconds(300))
    bundles.noteIdleLoss(of: a, idleFor: .seconds(60), at: start + .seconds(301))
    bundles.noteIdleLoss(of: a, idleFor: .milliseconds(199), at: start + .seconds(302))
    bundles.noteIdleLoss(of: nil, idleFor: .seconds(1), at: start)
    #expect(bundles.idleLimit(of: a, at: start + .seconds(303)) == .seconds(20))
    #expect(bundles.idleLimit(of: a, at: start + .seconds(901)) == nil)
    bundles.noteIdleLoss(of: a, idleFor: .milliseconds(300), at: start + .seconds(902))
    #expect(bundles.idleLimit(of: a, at: start + .seconds(903)) == .milliseconds(200))
  }

  @Test("idle limits are remembered for at most 64 endpoints, including the latest")
  func manyIdleLimits() {
    let bundles = OriginBundles(of: Origin(.https, host: "one.test"), .plain)
    let endpoints = (0..<200).map { IPEndpoint(IPAddress(v4: 0x7f00_0001 + UInt32($0)), port: 443) }
    for endpoint in endpoints { bundles.noteIdleLoss(of: endpoint, idleFor: .seconds(2), at: start) }
    #expect(endpoints.count { bundles.idleLimit(of: $0, at: start) != nil } <= 64)
    #expect(bundles.idleLimit(of: endpoints[199], at: start) == .seconds(1))
  }

  @Test("a plain origin uses HTTP/1.1, and no other origin uses its connections to a proxy")
  func plain() {
    let one = OriginBundles(of: Origin(.http, host: "one.test"), .plain)
    let other = OriginBundles(of: Origin(.http, host: "other.test"), .plain)
    let direct = one.connectionClass(for: .automatic, to: a, at: start)
    #expect(!direct.offersHTTP2)
    #expect(direct != other.connectionClass(for: .automatic, to: a, at: start))
    let proxied = one.connectionClass(for: .automatic, to: nil, at: start)
    #expect(proxied == one.connectionClass(for: .http1, to: nil, at: start))
    #expect(proxied != other.connectionClass(for: .automatic, to: nil, at: start))
    #expect(!proxied.offersHTTP2 && proxied.bundle != 0 && proxied != direct)
  }

  @Test("an endpoint that chose HTTP/1.1 is offered only HTTP/1.1 for 10 minutes, in the same bundle")
  func learns() {
    let bundles = OriginBundles(of: Origin(.https, host: "api.test"), .plain)
    let offer = bundles.connectionClass(for: .automatic, to: a, at: start)
    #expect(offer.offersHTTP2)
    bundles.recordALPN(of: a, choseHTTP2: false, in: offer, at: start)
    let serial = bundles.connectionClass(for: .automatic, to: a, at: start + .seconds(599))
    #expect(!serial.offersHTTP2)
    #expect(serial.bundle == offer.bundle)
    #expect(bundles.connectionClass(for: .http1, to: a, at: start) == serial)
    // Connections to `b` still offer HTTP/2 in the old bundle. A request that asks for HTTP/2 at `a` gets a
    // new bundle, which has no HTTP/1.1 connections.
    #expect(bundles.connectionClass(for: .automatic, to: b, at: start) == offer)
    let insisting = bundles.connectionClass(for: .http2, to: a, at: start)
    #expect(insisting.offersHTTP2 && insisting.bundle != offer.bundle)
    // A second connection in the old bundle also chose HTTP/1.1, because its handshake was already under way.
    // The bundle for HTTP/2 is not replaced again.
    bundles.recordALPN(of: a, choseHTTP2: false, in: offer, at: start + .seconds(1))
    #expect(bundles.connectionClass(for: .http2, to: a, at: start) == insisting)
    #expect(bundles.connectionClass(for: .automatic, to: a, at: start + .seconds(602)) == insisting)
  }

  @Test("an endpoint that chooses HTTP/2 again is offered HTTP/2")
  func learnsHTTP2() {
    let bundles = OriginBundles(of: Origin(.https, host: "api.test"), .plain)
    let offer = bundles.connectionClass(for: .automatic, to: a, at: start)
    bundles.recordALPN(of: a, choseHTTP2: false, in: offer, at: start)
    let insisting = bundles.connectionClass(for: .http2, to: a, at: start)
    bundles.recordALPN(of: a, choseHTTP2: true, in: insisting, at: start)
    #expect(bundles.connectionClass(for: .automatic, to: a, at: start) == insisting)
  }

  @Test("a bundle has one origin, and offers no HTTP/2 to an endpoint after it offered only HTTP/1.1")
  func random() {
    for seed in UInt64(1)...500 {
      var random = SplitMix64(seed: seed)
      let bundles = [
        OriginBundles(of: Origin(.https, host: "a.test"), .plain),
        OriginBundles(of: Origin(.https, host: "b.test"), .plain),
      ]
      // The pairs of a bundle and an endpoint for which a transfer offered only HTTP/1.1. No later transfer
      // of such a pair may offer HTTP/2.
      var serial: Set<String> = []
      // The index in `bundles` of the origin that has a bundle, by the number of the bundle.
      var owners: [UInt32: Int] = [:]
      var now = start
      for _ in 0..<60 {
        let index = Int(random.below(2))
        let endpoint = [a, b, nil][Int(random.below(3))]
        let version = [RequestOptions.Version.automatic, .http1, .http2][Int(random.below(3))]
        let chosen = bundles[index].connectionClass(for: version, to: endpoint, at: now)
        let key = "\(chosen.bundle) \(endpoint.map { "\($0)" } ?? "proxy")"
        if chosen.offersHTTP2 {
          #expect(!serial.contains(key), "seed \(seed)")
        } else {
          serial.insert(key)
        }
        #expect(owners[chosen.bundle, default: index] == index, "seed \(seed)")
        owners[chosen.bundle] = index
        if chosen.offersHTTP2, random.below(2) == 0 {
          bundles[index].recordALPN(of: endpoint, choseHTTP2: random.below(3) > 0, in: chosen, at: now)
        }
        now = now + .seconds(Int64(random.below(200)))
      }
    }
  }
}
