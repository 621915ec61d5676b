import NetOptCore

/// Tells the server the span of each attempt (`traceparent`), and records the span. `RetryInterceptor` runs this
/// interceptor once for each attempt. It runs before `SigningInterceptor`, because a signature may cover the
/// field.
struct TraceInterceptor: Interceptor {
  let tracer: Tracer

  func intercept(_ request: NetOptRequest, next: InterceptorChain) async throws(NetOptError) -> NetOptResponse
  {
    guard let trace = next.trace else { return try await next.proceed(request) }
    let attempt = TracedAttempt(tracer, trace, request, next)
    do throws(NetOptError) {
      let response = try await next.proceed(attempt.continued(request))
      attempt.ended(request, response)
      return response
    } catch {
      attempt.failed(request, error)
      throw error
    }
  }
}

/// An attempt with a span. Its methods are not inlined, because their local variables would enlarge the frame of
/// every waiting call.
private final class TracedAttempt: Sendable {
  private let tracer: Tracer
  private let trace: CallTrace
  private let context: TraceContext
  private let kind: Span.Kind
  private let started: MonotonicInstant
  private let callStarted: MonotonicInstant

  @inline(never)
  init(_ tracer: Tracer, _ trace: CallTrace, _ request: NetOptRequest, _ next: InterceptorChain) {
    self.tracer = tracer
    self.trace = trace
    kind = .attempt(earlier: trace.beginAttempt(request.headers), next.attempt?.reason ?? .first)
    context = trace.context.with(spanID: tracer.number())
    started = tracer.timeSource.now()
    callStarted = next.started
  }

  /// Returns the request with the fields that name this span.
  @inline(never)
  func continued(_ request: NetOptRequest) -> NetOptRequest {
    var request = request
    request.headers["traceparent"] = context.traceparent
    request.headers["tracestate"] = context.state
    return request
  }

  @inline(never)
  func ended(_ request: NetOptRequest, _ response: NetOptResponse) {
    guard context.isSampled else { return }
    trace.recordResponse()
    record(
      request,
      SpanResult(
        status: response.status, version: response.version, remote: response.remote, reused: response.reused,
        sends: response.attempts, route: response.route, callStarted: callStarted))
  }

  @inline(never)
  func failed(_ request: NetOptRequest, _ error: NetOptError) {
    guard context.isSampled else { return }
    record(
      request,
      SpanResult(
        remote: error.endpoint, route: error.route, error: error,
        isOvertaken: error.code == .cancelled && request.hedges && trace.hasResponse,
        callStarted: callStarted))
  }

  private func record(_ request: NetOptRequest, _ result: SpanResult) {
    tracer.spans.append(
      Span(
        context, parentID: trace.context.spanID, epoch: trace.epoch, kind, from: started,
        to: tracer.timeSource.now(),
        SpanRequest(request), result))
  }
}
