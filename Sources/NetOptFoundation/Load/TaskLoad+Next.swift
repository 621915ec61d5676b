import Foundation
import FoundationNetworking
import NetOpt
import NetOptLocking

/// Redirects and requests for credentials: the responses after which another request may follow.
extension TaskLoad {
  /// The maximum number of redirects, which is Foundation's.
  private static let mostRedirects = 20

  /// Returns the request that follows a response; `nil` if the response is the final one.
  ///
  /// - Throws: `URLError` with one of these codes: `httpTooManyRedirects`; `requestBodyStreamExhausted` if a
  ///   stream would have to be sent again; `unsupportedURL` if the next URL is neither http nor https;
  ///   `badURL` if the delegate's request has no URL; `badServerResponse` if Foundation cannot represent the
  ///   response.
  func nextRequest(
    after response: NetOptResponse, to request: LoadRequest, by client: NetOptClient
  ) async throws -> LoadRequest? {
    if response.status == 401 { return await authorizedRequest(after: response, to: request) }
    guard let target = try request.redirectTarget(of: response) else { return nil }
    var next = request.redirected(response.status, to: target, in: session.configuration)
    // A redirect that the client does not allow is the final response, as it is for callers of the client.
    if let new = next.netOptURL {
      guard let old = request.netOptURL, client.allowsRedirect(from: old, to: new) else { return nil }
    }
    let count = await onQueue { load in
      load.redirects += 1
      return load.redirects
    }
    guard count <= Self.mostRedirects else { throw URLError(.httpTooManyRedirects) }
    if let delegate {
      guard let head = HTTPURLResponse.make(response, url: request.url) else {
        throw URLError(.badServerResponse)
      }
      guard let chosen = await ask(delegate, about: next.urlRequest, head) else { return nil }
      try next.replace(by: chosen)
    }
    let url = next.url
    await onQueue { $0.url = url }
    if case .stream = next.body { throw URLError(.requestBodyStreamExhausted) }
    return next
  }

  /// Asks the delegate for the request that follows a redirect. The idle timer pauses meanwhile.
  ///
  /// - Returns: `nil` if the delegate does not follow the redirect, or if the load ends first.
  private func ask(
    _ delegate: any URLSessionTaskDelegate, about request: URLRequest, _ head: HTTPURLResponse
  ) async -> URLRequest? {
    await onQueue { $0.idleTimer?.pause() }
    let answer = FirstValue<URLRequest?>()
    session.delegateQueue.addOperation {
      delegate.urlSession(
        self.session, task: self.task, willPerformHTTPRedirection: head, newRequest: request
      ) { answer.set($0) }
    }
    // The end of the load cancels the wait, because a delegate may never answer.
    let chosen = await answer.value(whenCancelled: nil)
    await onQueue { $0.idleTimer?.resume() }
    return chosen
  }

  /// Returns the request with the credentials for which a server asks.
  ///
  /// - Returns: `nil` if there are none, if the server does not ask for Basic authentication, or if the body
  ///   is a stream, which cannot be sent again.
  private func authorizedRequest(
    after response: NetOptResponse, to request: LoadRequest
  ) async -> LoadRequest? {
    guard let space = URLProtectionSpace.basic(of: response, from: request.url) else { return nil }
    if case .stream = request.body { return nil }
    let failures = await onQueue { load in
      defer { load.challenges += 1 }
      return load.challenges
    }
    guard let credential = await credential(for: space, after: failures, response, request) else {
      return nil
    }
    await onQueue { $0.credential = (credential, space) }
    return request.authorized(by: credential)
  }

  /// Asks the delegate and the storage for a credential. Cancels the task if the delegate cancels the
  /// challenge or rejects the protection space.
  ///
  /// - Parameter failures: the number of earlier challenges in this load.
  /// - Returns: `nil` if there is no credential.
  private func credential(
    for space: URLProtectionSpace, after failures: Int, _ response: NetOptResponse, _ request: LoadRequest
  ) async -> URLCredential? {
    let storage = session.configuration.urlCredentialStorage
    let stored = storage?.credential(forEqualOf: space)
    // Only the first challenge of the load gets the stored credential. So a refused one is not sent again.
    let proposed = failures == 0 ? stored : nil
    guard let delegate else { return proposed }
    let challenge = URLAuthenticationChallenge(
      protectionSpace: space, proposedCredential: proposed, previousFailureCount: failures,
      failureResponse: HTTPURLResponse.make(response, url: request.url), error: nil, sender: NoSender())
    await onQueue { $0.idleTimer?.pause() }
    let answer = FirstValue<(URLSession.AuthChallengeDisposition, URLCredential?)>()
    session.delegateQueue.addOperation {
      delegate.urlSession(self.session, task: self.task, didReceive: challenge) { answer.set(($0, $1)) }
    }
    let (disposition, credential) = await answer.value(whenCancelled: (.performDefaultHandling, nil))
    await onQueue { $0.idleTimer?.resume() }
    switch disposition {
    case .useCredential: return credential
    case .performDefaultHandling: return proposed
    case .cancelAuthenticationChallenge, .rejectProtectionSpace:
      task.cancel()
      return nil
    @unknown default: return nil
    }
  }
}

/// The sender of a challenge, which `URLAuthenticationChallenge` requires. It does nothing: a delegate
/// answers through the completion handler.
private final class NoSender: NSObject, URLAuthenticationChallengeSender {
  func use(_ credential: URLCredential, for challenge: URLAuthenticationChallenge) {}
  func continueWithoutCredential(for challenge: URLAuthenticationChallenge) {}
  func cancel(_ challenge: URLAuthenticationChallenge) {}
  func performDefaultHandling(for challenge: URLAuthenticationChallenge) {}
  func rejectProtectionSpaceAndContinue(with challenge: URLAuthenticationChallenge) {}
}
