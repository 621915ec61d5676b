/// Something that stands around each call: it may change the request, answer it itself, change the answer, or call
/// again. Written so that the file reads from top to bottom: before, `next.proceed`, after.
public protocol Interceptor: Sendable {
  /// Handles a call.
  ///
  /// - Parameters:
  ///   - request: what is asked for.
  ///   - next: the rest of the chain. Call it never, once, or once per attempt.
  func intercept(_ request: HTTPRequest, next: InterceptorChain) async throws(NetOptError) -> HTTPResponse
}

/// The part of a chain that lies below an interceptor. A value: it can be called again.
public struct InterceptorChain: Sendable {
  /// What is known of the call besides the request.
  public var context: CallContext
  @usableFromInline let links: [any Interceptor]
  @usableFromInline let position: Int

  /// Makes a chain of interceptors, outermost first. The last one answers without calling `next`.
  public init(_ links: [any Interceptor], context: CallContext) {
    self.links = links
    self.context = context
    position = 0
  }

  @usableFromInline init(_ chain: InterceptorChain, at position: Int) {
    links = chain.links
    context = chain.context
    self.position = position
  }

  /// Hands the request to the rest of the chain.
  ///
  /// - Throws: what the rest throws; `NetOptError.Code.invalidConfiguration` when there is no rest.
  @inlinable @inline(__always)
  public func proceed(_ request: HTTPRequest) async throws(NetOptError) -> HTTPResponse {
    guard position < links.count else {
      throw NetOptError(
        .invalidConfiguration, phase: .send, "the interceptor chain ends without a transport that answers")
    }
    return try await links[position].intercept(request, next: InterceptorChain(self, at: position + 1))
  }
}
