import Foundation
import FoundationNetworking

/// Who receives the response of a task. `URLProtocolClient` keeps only the last piece of a body for completion
/// handlers, and passes all pieces to delegates, so a protocol has to know whom it serves.
enum TaskAudience {
  /// The delegate of the session receives each piece.
  case delegate(any URLSessionTaskDelegate)
  /// A completion handler or an `async` function receives the whole body. The delegate that the program has
  /// passed to the call receives each piece too.
  case completionHandler(any URLSessionTaskDelegate)
  /// A completion handler or an `async` function receives the whole body. The call has no delegate.
  case completionHandlerOnly
  /// Nobody receives the body.
  case nobody
  /// Foundation's registry has another form than expected. The whole body in one piece is right for everyone.
  case unknown

  /// Finds the audience in the registry of the session. Must be called on the work queue of the task.
  init(of task: URLSessionTask, in session: URLSession) {
    guard let registry = TaskInternals.property("taskRegistry", of: session),
      let behaviours = TaskInternals.property("behaviours", of: registry) as? any IntegerKeyed,
      let behaviour = behaviours.value(for: task.taskIdentifier)
    else {
      self = .unknown
      return
    }
    guard let handler = Mirror(reflecting: behaviour).children.first else {
      guard String(describing: behaviour) == "callDelegate" else {
        self = .unknown
        return
      }
      self = (session.delegate as? any URLSessionTaskDelegate).map { .delegate($0) } ?? .nobody
      return
    }
    switch handler.label {
    case "dataCompletionHandler", "downloadCompletionHandler":
      self = .completionHandlerOnly
    case "dataCompletionHandlerWithTaskDelegate", "downloadCompletionHandlerWithTaskDelegate":
      let delegate = Mirror(reflecting: handler.value).children.lazy.compactMap {
        $0.value as? any URLSessionTaskDelegate
      }.first
      self = delegate.map { .completionHandler($0) } ?? .completionHandlerOnly
    default:
      self = .unknown
    }
  }

  /// The delegate that is told of the pieces and of the progress; `nil` if there is none.
  var delegate: (any URLSessionTaskDelegate)? {
    switch self {
    case .delegate(let delegate), .completionHandler(let delegate): delegate
    case .completionHandlerOnly, .nobody, .unknown: nil
    }
  }
}

/// A dictionary with integer keys, whose values have a type that Foundation does not publish.
private protocol IntegerKeyed {
  func value(for key: Int) -> Any?
}

extension Dictionary: IntegerKeyed where Key == Int {
  fileprivate func value(for key: Int) -> Any? { self[key] }
}
