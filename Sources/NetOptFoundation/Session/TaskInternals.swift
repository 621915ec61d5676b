import Dispatch
import Foundation
import FoundationNetworking

/// The properties of a task that Foundation does not publish, and without which a protocol cannot serve all
/// tasks. They are read by reflection, which needs no assumption about the layout of Foundation's classes.
///
/// Make the value on the work queue of the task, before the load begins. Reflection reads the other stored
/// properties too, and no code writes them at that point.
struct TaskInternals {
  /// The session.
  let session: URLSession
  /// The serial queue on which Foundation requires all calls of `URLProtocolClient`: they read the registry of
  /// the session's tasks, which has no lock.
  let workQueue: DispatchQueue
  /// Who receives the response.
  let audience: TaskAudience
  /// The body of the request.
  let body: UploadBody

  init?(_ task: URLSessionTask) {
    guard let session = Self.property("session", of: task) as? URLSession,
      let workQueue = Self.property("workQueue", of: task) as? DispatchQueue
    else { return nil }
    self.session = session
    self.workQueue = workQueue
    audience = TaskAudience(of: task, in: session)
    body = UploadBody(known: Self.property("knownBody", of: task), request: task.originalRequest)
  }

  /// Whether the tasks of the installed Foundation have the properties.
  static let areKnown: Bool = {
    // A task without a session, which has all properties of other tasks.
    let task = URLSessionDataTask()
    return property("workQueue", of: task) is DispatchQueue && property("session", of: task) != nil
      && property("knownBody", of: task) != nil && DownloadFile.isKnown
  }()

  /// Returns the value of a stored property of an object or of its superclasses; `nil` if there is none.
  static func property(_ name: String, of object: Any) -> Any? {
    var mirror: Mirror? = Mirror(reflecting: object)
    while let present = mirror {
      if let child = present.children.first(where: { $0.label == name }) { return child.value }
      mirror = present.superclassMirror
    }
    return nil
  }
}
