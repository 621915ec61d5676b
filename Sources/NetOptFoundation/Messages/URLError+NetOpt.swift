import Foundation
import FoundationNetworking
import NetOpt

extension URLError {
  /// Makes the error with which a task fails. Its code is the one that Foundation's own protocol gives on
  /// Linux; `NSUnderlyingErrorKey` has the error of netopt, which says more.
  init(loading error: any Error) {
    switch error {
    case let error as URLError: self = error
    case let error as NetOptError:
      self.init(
        Self.code(of: error),
        userInfo: [NSUnderlyingErrorKey: error, NSLocalizedDescriptionKey: error.message])
    default: self.init(.unknown, userInfo: [NSUnderlyingErrorKey: error])
    }
  }

  /// Returns the error with the URL that failed.
  func addingURL(_ url: URL?) -> URLError {
    guard let url, userInfo[NSURLErrorFailingURLErrorKey] == nil else { return self }
    var userInfo = userInfo
    userInfo[NSURLErrorFailingURLErrorKey] = url
    // The value of `NSURLErrorFailingURLStringErrorKey`, which Foundation sets although it is deprecated.
    userInfo["NSErrorFailingURLStringKey"] = url.absoluteString
    return URLError(code, userInfo: userInfo)
  }

  private static func code(of error: NetOptError) -> Code {
    switch error.code {
    case .cancelled, .shutDown: .cancelled
    case .timeout: .timedOut
    case .nameNotFound, .resolverFailed: .cannotFindHost
    case .connectFailed: .cannotConnectToHost
    case .tooManyRedirects: .httpTooManyRedirects
    case .invalidURL: .badURL
    case .unsupported: .unsupportedURL
    case .sendFailed, .receiveFailed: code(ofTransfer: error)
    // Foundation on Linux has no codes for the failures of TLS and for violations of HTTP.
    default: .unknown
    }
  }

  /// Returns the code for a connection that ended too early.
  private static func code(ofTransfer error: NetOptError) -> Code {
    // CURLE_SEND_ERROR and CURLE_RECV_ERROR: the connection was reset.
    let isReset = error.underlying.map { $0.library == .curl && [55, 56].contains($0.code) } ?? false
    if isReset { return .networkConnectionLost }
    // Foundation knows that a response is missing, but not that one is incomplete.
    return error.code == .sendFailed ? .badServerResponse : .unknown
  }
}
