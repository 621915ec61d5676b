import NetOptTestSupport
import NetOptCore
import Synchronization

/// The common part of the checks: calls on the transport of a bench.
struct ConformanceRun: Sendable {
  /// A stagger longer than any check. A leg that starts earlier was not started by its stagger.
  static let never = Duration.seconds(60)

  let bench: any ConformanceBench
  /// The thread on which the check runs.
  let thread = DedicatedThread()

  private static let callIDs = Atomic<UInt64>(1)

  init(_ bench: any ConformanceBench) { self.bench = bench }

  var multiplexes: Bool { bench.version != .http1 }

  /// A plan with legs to addresses of the bench, and on request a last leg for DNS.
  func plan(
    _ behaviours: ConformanceBehaviour..., thenDNS: Bool = false, of origin: Origin? = nil,
    stagger: Duration = ConformanceRun.never
  ) -> RoutePlan {
    var legs = behaviours.map {
      RoutePlan.Leg(.address(bench.address($0)), source: .list, stagger: stagger)
    }
    if thenDNS { legs.append(RoutePlan.Leg(.dns, source: .dns, stagger: stagger)) }
    return RoutePlan(
      origin: origin ?? bench.origin, policy: .fastest, legs: legs, multiplexes: multiplexes)
  }

  /// A request for a resource. The bench finds the request again by the mark in its query.
  func request(
    _ method: NetOptRequest.Method = .get, _ resource: ConformanceResource = .small, mark: String = "",
    of origin: Origin? = nil, body: RequestBody = .none
  ) throws -> NetOptRequest {
    var request = try NetOptRequest(
      method, "\(origin ?? bench.origin)\(bench.path(resource))?\(mark)", body: body)
    request.options.version = bench.version
    return request
  }

  /// Performs a call.
  ///
  /// - Parameter limit: the time until the deadline of the call.
  func call(
    _ request: NetOptRequest, along plan: RoutePlan, limit: Duration = .seconds(30)
  ) async throws(NetOptError) -> NetOptResponse {
    let now = bench.timeSource.now()
    let id = Self.callIDs.wrappingAdd(1, ordering: .relaxed).oldValue
    return try await bench.transport.execute(
      request, along: plan, in: CallContext(id: id, started: now, deadline: now + limit))
  }

  /// Performs a call that must fail.
  func failure(
    of request: NetOptRequest, along plan: RoutePlan, limit: Duration = .seconds(30)
  ) async throws -> NetOptError {
    let response: NetOptResponse
    do throws(NetOptError) { response = try await call(request, along: plan, limit: limit) } catch {
      return error
    }
    throw ConformanceFailure("the call succeeded with status \(response.status); it had to fail")
  }

  /// Reads a body that must fail. Returns the number of bytes received and the error.
  func failure(of body: ResponseBody) async throws -> (bytes: Int, error: NetOptError) {
    var bytes = 0
    do throws(NetOptError) {
      for try await chunk in body { bytes += chunk.count }
    } catch {
      return (bytes, error)
    }
    throw ConformanceFailure("the body ended in order after \(bytes) bytes; it had to fail")
  }

  /// The route of an error.
  func route(_ error: NetOptError) throws -> RouteReport {
    guard let route = error.route else { throw ConformanceFailure("the error has no route: \(error)") }
    return route
  }

  /// Shuts the transport down, so that all requests have been sent, and returns the addresses that received
  /// requests.
  func received(_ mark: String, expected: Int) async throws -> [IPAddress] {
    await bench.transport.shutdown()
    return try await bench.received(mark, expected: expected)
  }
}
