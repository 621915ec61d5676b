import NetOptTestSupport
import NetOptCore
import Synchronization

/// One run of a check on a bench. The extensions have one method for each case of `TransportConformance`,
/// with the name of the case. This file has the calls that the methods share.
struct ConformanceRun: Sendable {
  /// A stagger longer than any check. When the next leg starts earlier, something other than the stagger has
  /// started it, such as the failure of a leg.
  static let never = Duration.seconds(60)

  let bench: any ConformanceBench
  /// The thread on which the check and its tasks run, apart from the shared thread pool.
  let thread = DedicatedThread()

  /// The id for the next call. Each call of the process has its own.
  private static let callIDs = Atomic<UInt64>(1)

  init(_ bench: any ConformanceBench) { self.bench = bench }

  /// Whether the connections to the bench's servers are expected to speak HTTP/2.
  var multiplexes: Bool { bench.version != .http1 }

  /// A plan with a leg to the address of each behaviour, in this order.
  ///
  /// - Parameters:
  ///   - thenDNS: whether a DNS leg follows.
  ///   - origin: the origin of the plan. Default: the bench's `origin`.
  ///   - stagger: the stagger of each leg.
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

  /// A request for a resource. The query of its URL is `mark`, by which the bench finds the request again.
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

  /// Performs a call that must fail, and returns its error. Throws a `ConformanceFailure` if it succeeds.
  func failure(
    of request: NetOptRequest, along plan: RoutePlan, limit: Duration = .seconds(30)
  ) async throws -> NetOptError {
    let response: NetOptResponse
    do throws(NetOptError) { response = try await call(request, along: plan, limit: limit) } catch {
      return error
    }
    throw ConformanceFailure("the call succeeded with status \(response.status); it had to fail")
  }

  /// Reads a body whose end must be an error. Returns the number of bytes before the error, and the error.
  /// Throws a `ConformanceFailure` if the body ends without one.
  func failure(of body: ResponseBody) async throws -> (bytes: Int, error: NetOptError) {
    var bytes = 0
    do throws(NetOptError) {
      for try await chunk in body { bytes += chunk.count }
    } catch {
      return (bytes, error)
    }
    throw ConformanceFailure("the body ended in order after \(bytes) bytes; it had to fail")
  }

  /// The route report of an error. Throws a `ConformanceFailure` if the error has none.
  func route(_ error: NetOptError) throws -> RouteReport {
    guard let route = error.route else { throw ConformanceFailure("the error has no route: \(error)") }
    return route
  }

  /// Shuts the transport down, so that it sends nothing more, and returns the addresses that received
  /// requests with the mark.
  func received(_ mark: String, expected: Int) async throws -> [IPAddress] {
    await bench.transport.shutdown()
    return try await bench.received(mark, expected: expected)
  }
}
