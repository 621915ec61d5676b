import CEventLoop
import Glibc
import NetOptCore

/// The set of events that a descriptor is ready for or is watched for.
///
/// Public for speed: the compiler specialises generic code in another module only if the code is public.
public struct Readiness: OptionSet, Sendable {
  /// The bits, one for each kind of event.
  public let rawValue: UInt8
  /// Makes a set from its bits.
  @inlinable public init(rawValue: UInt8) { self.rawValue = rawValue }

  /// Data or the end of the stream can be read.
  @inlinable public static var read: Readiness { Readiness(rawValue: 1) }
  /// Data can be written.
  @inlinable public static var write: Readiness { Readiness(rawValue: 2) }
  /// The descriptor has failed or was hung up. epoll always reports this event; it cannot be requested.
  @inlinable public static var error: Readiness { Readiness(rawValue: 4) }
}

/// A handler that the loop calls on its thread when a descriptor is ready.
package protocol ReadinessHandler: AnyObject {
  func ready(_ descriptor: Int32, for readiness: Readiness)
}

/// The descriptors of one epoll instance and their handlers (epoll(7)).
///
/// A library may close a descriptor before it stops watching it, and the system may reuse the number at once.
/// So each registration has a generation. epoll returns the generation with the descriptor, and the poller
/// ignores an event with an older generation as stale. `watch` adds a descriptor that has left the epoll set
/// (ENOENT), and `unwatch` ignores ENOENT and EBADF.
///
/// A library may also ask to watch a number that is not an open descriptor, such as -1. epoll refuses the
/// number, and the poller registers nothing: the number would never become ready. The deadline of the waiting
/// operation ends the wait.
struct Poller: ~Copyable {
  private struct Registration {
    let handler: any ReadinessHandler
    /// The number of the registration. epoll returns it with the registration's events, so that the poller
    /// recognises stale events.
    let generation: UInt32
  }

  /// The epoll descriptor; -1 after `close`.
  private var epoll: Int32
  /// The eventfd whose readiness ends a wait. The loop owns it.
  private let wakeUp: Int32
  /// The handlers of the watched descriptors.
  private var registrations = DescriptorTable<Registration>()
  /// The generation of the latest registration. It wraps around.
  private var generation: UInt32 = 0
  /// The events of the last wait. When more descriptors are ready, the next wait returns the rest.
  private var events = [epoll_event](repeating: epoll_event(), count: 256)

  /// - Parameter wakeUp: an eventfd whose readiness ends a wait.
  init(wakeUp: Int32) throws(NetOptError) {
    self.wakeUp = wakeUp
    epoll = epoll_create1(Int32(EPOLL_CLOEXEC))
    guard epoll >= 0 else { throw systemError("epoll_create1", errno) }
    var event = epoll_event(events: EPOLLIN.rawValue, data: epoll_data_t(u64: UInt64(UInt32(bitPattern: -1))))
    // All properties are initialised at this point, so `deinit` closes the descriptor when this throws.
    guard epoll_ctl(epoll, EPOLL_CTL_ADD, wakeUp, &event) == 0 else { throw systemError("epoll_ctl", errno) }
  }

  deinit {
    if epoll >= 0 { Glibc.close(epoll) }
  }

  /// Closes the epoll descriptor and removes all registrations.
  ///
  /// - Returns: the handlers, for the caller to release. Releasing a handler may run code that calls the
  ///   loop, so the poller does not release them itself.
  mutating func close() -> [any ReadinessHandler] {
    if epoll >= 0 { Glibc.close(epoll) }
    epoll = -1
    let handlers = registrations.values.map(\.handler)
    registrations = DescriptorTable()
    return handlers
  }

  /// Watches a descriptor, or changes the readiness that it is watched for. When epoll refuses the
  /// descriptor, the poller no longer watches it.
  ///
  /// - Returns: the previous handler of the descriptor, for the caller to release.
  mutating func watch(
    _ descriptor: Int32, for interest: Readiness, _ handler: any ReadinessHandler
  ) -> (any ReadinessHandler)? {
    generation &+= 1
    let old = registrations[descriptor]
    var flags: UInt32 = 0
    if interest.contains(.read) { flags |= EPOLLIN.rawValue }
    if interest.contains(.write) { flags |= EPOLLOUT.rawValue }
    let data = UInt64(generation) << 32 | UInt64(UInt32(bitPattern: descriptor))
    var event = epoll_event(events: flags, data: epoll_data_t(u64: data))
    // The poller cannot know whether epoll still holds the descriptor, even when the interest is the same as
    // before: closing and reopening a descriptor removes it from the epoll set silently.
    var code = epoll_ctl(epoll, EPOLL_CTL_MOD, descriptor, &event)
    if code != 0, errno == ENOENT { code = epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event) }
    // The table keeps only descriptors that epoll has accepted. epoll checks that a descriptor is open; a
    // number far beyond the open descriptors would make the table as large as that number.
    registrations[descriptor] = code == 0 ? Registration(handler: handler, generation: generation) : nil
    return old?.handler
  }

  /// Stops watching a descriptor for a handler. Does nothing when the number now belongs to another handler:
  /// a library may close a socket, open another one with the same number, and only then stop watching the
  /// closed one.
  ///
  /// - Returns: the handler, for the caller to release; `nil` when nothing was done.
  mutating func unwatch(_ descriptor: Int32, of handler: any ReadinessHandler) -> (any ReadinessHandler)? {
    guard let old = registrations[descriptor], old.handler === handler else { return nil }
    registrations[descriptor] = nil
    // ENOENT and EBADF mean that the descriptor was closed before. epoll has then removed it already.
    _ = epoll_ctl(epoll, EPOLL_CTL_DEL, descriptor, nil)
    return old.handler
  }

  /// Waits until a descriptor is ready, a thread writes to the eventfd `wakeUp`, or the timeout passes.
  ///
  /// - Parameter timeout: milliseconds; -1 waits forever.
  /// - Returns: the number of events. `event(_:)` returns each of them.
  mutating func wait(_ timeout: Int32) -> Int {
    let count = epoll_wait(epoll, &events, Int32(events.count), timeout)
    return max(0, Int(count))  // EINTR is an early end of the wait
  }

  /// Returns the event at an index, with its handler. `nil` for a stale event, and for an event of the
  /// eventfd `wakeUp`, which this function reads to reset it.
  mutating func event(_ index: Int) -> (handler: any ReadinessHandler, descriptor: Int32, Readiness)? {
    let event = events[index]
    let descriptor = Int32(bitPattern: UInt32(truncatingIfNeeded: event.data.u64))
    if descriptor == -1 {
      var value: UInt64 = 0
      read(wakeUp, &value, 8)
      return nil
    }
    guard let registration = registrations[descriptor],
      registration.generation == UInt32(truncatingIfNeeded: event.data.u64 >> 32)
    else { return nil }
    var readiness: Readiness = []
    if event.events & EPOLLIN.rawValue != 0 { readiness.insert(.read) }
    if event.events & EPOLLOUT.rawValue != 0 { readiness.insert(.write) }
    if event.events & (EPOLLERR.rawValue | EPOLLHUP.rawValue) != 0 { readiness.insert(.error) }
    return (registration.handler, descriptor, readiness)
  }
}

/// The error of a system call that failed.
///
/// - Parameters:
///   - call: the name of the call.
///   - code: its errno.
func systemError(_ call: String, _ code: Int32) -> NetOptError {
  let hint =
    code == EMFILE || code == ENFILE ? "; raise the limit of open files (ulimit -n)" : ""
  return NetOptError(
    .libraryFailed, phase: .connect, "\(call) failed\(hint)",
    underlying: NetOptError.Underlying(.system, code: code, text: String(cString: strerror(code))))
}
