import CEventLoop
import Glibc
import NetOptCore

/// What a descriptor is ready for, or is watched for.
///
/// Public for the sake of speed: of a package's type, another module only gets functions that are not specialised.
public struct Readiness: OptionSet, Sendable {
  /// One bit for each.
  public let rawValue: UInt8
  /// Makes a set of its bits.
  @inlinable public init(rawValue: UInt8) { self.rawValue = rawValue }

  /// There is something to read, or the end.
  @inlinable public static var read: Readiness { Readiness(rawValue: 1) }
  /// There is room to write.
  @inlinable public static var write: Readiness { Readiness(rawValue: 2) }
  /// The descriptor has failed or was hung up on. Always reported, never asked for.
  @inlinable public static var error: Readiness { Readiness(rawValue: 4) }
}

/// Who is told that a descriptor is ready, on the loop's thread.
package protocol ReadinessHandler: AnyObject {
  func ready(_ descriptor: Int32, for readiness: Readiness)
}

/// The descriptors of one epoll instance and their handlers (epoll(7)).
///
/// A library may close a descriptor before it asks for its removal, and the number may be in use again at once. So
/// each registration has a generation, which epoll hands back beside the descriptor: an event of an older
/// registration is seen as stale. And changing or removing one tolerates EBADF, ENOENT and EEXIST.
///
/// A library may also ask for a number that is no open descriptor, such as -1. epoll refuses it, and nothing is registered: it
/// would never be ready. The deadline of what waits for it ends the wait.
struct Poller: ~Copyable {
  private struct Registration {
    let handler: any ReadinessHandler
    let generation: UInt32
  }

  private var epoll: Int32
  private let wakeUp: Int32
  private var registrations = DescriptorTable<Registration>()
  private var generation: UInt32 = 0
  private var events = [epoll_event](repeating: epoll_event(), count: 256)

  /// - Parameter wakeUp: an eventfd that ends a wait.
  init(wakeUp: Int32) throws(NetOptError) {
    self.wakeUp = wakeUp
    epoll = epoll_create1(Int32(EPOLL_CLOEXEC))
    guard epoll >= 0 else { throw systemError("epoll_create1", errno) }
    var event = epoll_event(events: EPOLLIN.rawValue, data: epoll_data_t(u64: UInt64(UInt32(bitPattern: -1))))
    // Everything has its value here, so that `deinit` closes the descriptor when this throws.
    guard epoll_ctl(epoll, EPOLL_CTL_ADD, wakeUp, &event) == 0 else { throw systemError("epoll_ctl", errno) }
  }

  deinit {
    if epoll >= 0 { Glibc.close(epoll) }
  }

  /// Closes the descriptor and forgets all registrations.
  ///
  /// - Returns: the handlers. Letting go of one may run code that calls the loop, so nothing here does.
  mutating func close() -> [any ReadinessHandler] {
    if epoll >= 0 { Glibc.close(epoll) }
    epoll = -1
    let handlers = registrations.values.map(\.handler)
    registrations = DescriptorTable()
    return handlers
  }

  /// Watches a descriptor, or changes what it is watched for. One that epoll refuses is not watched any more.
  ///
  /// - Returns: the handler that it had, for the caller to let go of.
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
    // Which of the two it is cannot be known from here, even when the interest is the same as before: a closed and
    // reopened descriptor has left the set silently.
    var code = epoll_ctl(epoll, EPOLL_CTL_MOD, descriptor, &event)
    if code != 0, errno == ENOENT { code = epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event) }
    // Only what epoll has taken: it knows the open descriptors, and a number beyond them would make the table as large.
    registrations[descriptor] = code == 0 ? Registration(handler: handler, generation: generation) : nil
    return old?.handler
  }

  /// Ends watching. Does nothing when the number has become another handler's meanwhile: what a library says of a socket that it
  /// has closed may come later than the next one with its number.
  ///
  /// - Returns: the handler, for the caller to let go of.
  mutating func unwatch(_ descriptor: Int32, of handler: any ReadinessHandler) -> (any ReadinessHandler)? {
    guard let old = registrations[descriptor], old.handler === handler else { return nil }
    registrations[descriptor] = nil
    // ENOENT and EBADF say that the descriptor was closed before: then it has left the set by itself.
    _ = epoll_ctl(epoll, EPOLL_CTL_DEL, descriptor, nil)
    return old.handler
  }

  /// Waits until something is ready, the wake-up is written to, or the time is over.
  ///
  /// - Parameter timeout: milliseconds; -1 waits for ever.
  /// - Returns: how many events there are to be handed out with `event(_:)`.
  mutating func wait(_ timeout: Int32) -> Int {
    let count = epoll_wait(epoll, &events, Int32(events.count), timeout)
    return max(0, Int(count))  // EINTR is an early end of the wait
  }

  /// The event with that index, or `nil` when it is the wake-up's or stale.
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

func systemError(_ call: String, _ code: Int32) -> NetOptError {
  let hint =
    code == EMFILE || code == ENFILE ? "; raise the limit of open files (ulimit -n)" : ""
  return NetOptError(
    .libraryFailed, phase: .connect, "\(call) failed\(hint)",
    underlying: NetOptError.Underlying(.system, code: code, text: String(cString: strerror(code))))
}
