import Foundation
import FoundationNetworking
import Glibc
import NetOpt
import Synchronization

extension HTTPURLResponse {
  /// Makes the response that the task shows; `nil` if Foundation refuses it.
  ///
  /// - Parameters:
  ///   - response: the response of netopt.
  ///   - url: the URL of the request that it answers.
  static func make(_ response: NetOptResponse, url: URL) -> HTTPURLResponse? {
    var fields: [String: String] = [:]
    // The names as they came first, by the names in lower case: of two keys that differ only in case, Foundation
    // would drop one.
    var names: [String: String] = [:]
    for field in response.headers {
      let name = names[field.name.lowercased(), default: field.name]
      names[field.name.lowercased()] = name
      fields[name] = fields[name].map { "\($0), \(field.value)" } ?? field.value
    }
    let version = "\(response.version)"
    return response.status == 401
      ? AnsweredChallengeResponse(url: url, statusCode: 401, httpVersion: version, headerFields: fields)
      : HTTPURLResponse(
        url: url, statusCode: response.status, httpVersion: version, headerFields: fields)
  }
}

/// A 401 whose challenge the load has dealt with. When a task ends with a 401, Foundation looks for a
/// challenge: it asks the delegate, sends the request itself, and never completes the task if there are no
/// credentials. It does not do so for a response without a URL.
final class AnsweredChallengeResponse: HTTPURLResponse, @unchecked Sendable {
  // Unchecked, as in the superclass: the one variable is in a mutex.

  /// The thread on which Foundation looks for a challenge; `nil` at other times.
  private let concluding = Mutex<pthread_t?>(nil)

  override var url: URL? { concluding.withLock { $0 } == pthread_self() ? nil : super.url }

  /// Calls a closure in which Foundation finds no challenge in this response.
  func whileConcluding(_ conclude: () -> Void) {
    concluding.withLock { $0 = pthread_self() }
    defer { concluding.withLock { $0 = nil } }
    conclude()
  }
}
