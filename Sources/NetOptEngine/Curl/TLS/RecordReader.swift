import COpenSSL
import Glibc
import NetOptCore

/// Stands between TLS and its socket, and lets libcurl read as much as a `RecordBudget` allows. Beyond that it says that nothing has come
/// yet, which libcurl takes for the state of the network: the socket stays readable, and the loop tells so again.
///
/// A filter BIO (BIO_push(3), BIO_meth_new(3)) in front of the one that libcurl made. OpenSSL calls it whenever it reads, and frees it
/// with the connection. Confined to the loop's thread.
///
/// It also knows where on the socket each record began. So it can be told whether a record had come before a request was sent.
final class RecordReader {
  var budget = RecordBudget()
  /// The TLS connection that reads through it, which owns it.
  private let ssl: OpaquePointer
  /// The reader of the TLS connection to a proxy, when this one's connection goes through it. Found in the handshake, which cannot end before the
  /// proxy's connection was read; looked for until a request is sent.
  private(set) var outer: RecordReader?
  private var looksForOuter = true
  /// Whether the budget counts: from the first request on, when HTTP/2 was negotiated.
  var isActive = false

  /// Whether it said that nothing has come although it may have.
  private(set) var hasRefused = false
  /// How much was read since then, while the budget did not count.
  private var unbudgeted = 0

  private init(_ ssl: OpaquePointer) { self.ssl = ssl }

  /// Whether something lies read and not yet taken, here or in the connection to the proxy.
  var hasBufferedData: Bool {
    // OpenSSL does not count the head of a record.
    budget.isInRecord || RecordReader.Functions.loaded?.pointee.hasPending(ssl) == 1
      || outer?.hasBufferedData == true
  }

  /// Whether a handshake is in progress, here or in the connection to the proxy: nothing can be sent until it ends.
  var isInHandshake: Bool {
    RecordReader.Functions.loaded?.pointee.isInHandshake(ssl) == 1 || outer?.isInHandshake == true
  }

  /// How much has come on the socket, when it is known how much of it lies there unread. From now on nothing is looked for below.
  ///
  /// - Parameter unread: what has come on the socket and was not read.
  func received(_ unread: Int) -> Int {
    endSearch()
    return lowest.budget.position + unread
  }

  /// The handshake is over: who is below is known.
  func endSearch() { looksForOuter = false }

  /// The reader that reads from the socket.
  var lowest: RecordReader { outer?.lowest ?? self }

  private func read(
    _ bio: OpaquePointer, into buffer: UnsafeMutableRawPointer, _ count: Int32,
    _ functions: borrowing Functions
  ) -> Int32 {
    functions.clearFlags(bio, netopt_bio_retry_flags)
    guard let next = functions.next(bio) else { return -1 }
    // What the connection to the proxy has decrypted does not show at the socket: nothing would have it read. Its own reader limits both.
    guard outer != nil || mayRead else { return refuse(bio, functions) }
    // The reader that reads and looks for the one below, on this thread. It is set within a read alone, in which its BIO holds the reader.
    let above = pthread_getspecific(Self.readingKey)
    if let above {
      let inner = Unmanaged<RecordReader>.fromOpaque(above).takeUnretainedValue()
      if inner !== self { inner.outer = self }
    }
    if looksForOuter { pthread_setspecific(Self.readingKey, Unmanaged.passUnretained(self).toOpaque()) }
    let result = functions.read(next, buffer, count)
    if looksForOuter { pthread_setspecific(Self.readingKey, above) }
    functions.copyRetry(bio)
    if result > 0 {
      budget.read(
        UnsafeRawBufferPointer(start: buffer, count: Int(result)), in: outer?.budget.recordStart)
      unbudgeted += max(Int(result), RecordBudget.leastCost)
    }
    return result
  }

  /// OpenSSL goes on as long as it gets what is no data, such as session tickets. So it is interrupted also where the budget does not count.
  private var mayRead: Bool {
    isActive && budget.streams > 0 ? budget.mayRead : unbudgeted < RecordBudget.limit
  }

  /// TLS has changed its state behind the handshake, as it does for a ticket, here or in a connection that goes through this one. A record
  /// can have hundreds of tickets.
  func chargeStateChange() {
    let lowest = lowest
    lowest.budget.chargeStateChange()
    lowest.unbudgeted += RecordBudget.stateChangeCost
  }

  private func refuse(_ bio: OpaquePointer, _ functions: borrowing Functions) -> Int32 {
    hasRefused = true
    unbudgeted = 0
    // BIO_set_retry_read(3) is a macro for this.
    functions.setFlags(bio, netopt_bio_read | netopt_bio_should_retry)
    return -1
  }

  /// Each loop has a thread of its own.
  private static let readingKey: pthread_key_t = {
    var key = pthread_key_t()
    precondition(pthread_key_create(&key, nil) == 0, "the process has no key left for a thread's values")
    return key
  }()

  // MARK: OpenSSL

  /// Puts a reader in front of what a connection reads from. At the beginning of its handshake, when nothing was read.
  static func attach(to ssl: OpaquePointer) {
    guard let functions = Functions.loaded?.pointee, let below = functions.readBIO(ssl) else { return }
    guard let bio = make(for: ssl, over: below)?.bio else { return }
    _ = functions.retain(below)
    functions.setReadBIO(ssl, bio)
  }

  /// Makes a reader with its BIO.
  ///
  /// - Parameters:
  ///   - ssl: the TLS connection that reads through it.
  ///   - below: what it reads from. The BIO frees it, or one reference to it.
  static func make(
    for ssl: OpaquePointer, over below: OpaquePointer
  ) -> (bio: OpaquePointer, reader: RecordReader)? {
    guard let functions = Functions.loaded?.pointee, let bio = functions.new(functions.method) else {
      return nil
    }
    let reader = RecordReader(ssl)
    // OpenSSL owns the reader from here: it is released with the BIO's end.
    functions.setData(bio, Unmanaged.passRetained(reader).toOpaque())
    functions.setReady(bio, 1)
    _ = functions.push(bio, below)
    return (bio, reader)
  }

  /// The reader of a connection, if it has one.
  static func of(_ ssl: OpaquePointer) -> RecordReader? {
    guard let functions = Functions.loaded?.pointee, let bio = functions.readBIO(ssl),
      functions.type(bio) == functions.index, let data = functions.data(bio)
    else { return nil }
    return Unmanaged<RecordReader>.fromOpaque(data).takeUnretainedValue()
  }

  /// OpenSSL's functions, with the types of their man pages, which nothing checks: BIO_meth_new(3), BIO_new(3), BIO_get_data(3),
  /// BIO_set_flags(3), BIO_read(3), BIO_ctrl(3), BIO_push(3), SSL_set0_rbio(3), SSL_has_pending(3), SSL_in_init(3).
  ///
  /// Unchecked: `method` is complete when it is stored, and nobody changes it.
  private struct Functions: @unchecked Sendable {
    typealias BIO = OpaquePointer
    typealias Method = OpaquePointer
    typealias Read = @convention(c) (BIO?, UnsafeMutableRawPointer?, Int32) -> Int32
    typealias Control = @convention(c) (BIO?, Int32, Int, UnsafeMutableRawPointer?) -> Int
    typealias Destroy = @convention(c) (BIO?) -> Int32

    let new: @convention(c) (Method) -> BIO?
    let next: @convention(c) (BIO) -> BIO?
    let push: @convention(c) (BIO, BIO) -> BIO?
    let retain: @convention(c) (BIO) -> Int32
    let type: @convention(c) (BIO) -> Int32
    let setData: @convention(c) (BIO, UnsafeMutableRawPointer?) -> Void
    let data: @convention(c) (BIO) -> UnsafeMutableRawPointer?
    let setReady: @convention(c) (BIO, Int32) -> Void
    let setFlags: @convention(c) (BIO, Int32) -> Void
    let clearFlags: @convention(c) (BIO, Int32) -> Void
    let copyRetry: @convention(c) (BIO) -> Void
    let read: @convention(c) (BIO, UnsafeMutableRawPointer, Int32) -> Int32
    let control: @convention(c) (BIO, Int32, Int, UnsafeMutableRawPointer?) -> Int
    let hasPending: @convention(c) (OpaquePointer) -> Int32
    let isInHandshake: @convention(c) (OpaquePointer) -> Int32
    let readBIO: @convention(c) (OpaquePointer) -> BIO?
    let setReadBIO: @convention(c) (OpaquePointer, BIO) -> Void
    /// What makes BIOs of this kind, and its number. It lives as long as the process.
    let method: Method
    let index: Int32

    /// By pointer, since they are asked for with each read: a copy of all of them would cost as much as the rest. Never freed.
    ///
    /// Unsafe: nothing is written to after it was made.
    nonisolated(unsafe) static let loaded: UnsafePointer<Functions>? = {
      guard OpenSSL.loaded != nil, let functions = try? Functions() else { return nil }
      let pointer = UnsafeMutablePointer<Functions>.allocate(capacity: 1)
      pointer.initialize(to: functions)
      return UnsafePointer(pointer)
    }()

    private init() throws(OpenSSL.MissingFunction) {
      new = try OpenSSL.function("BIO_new")
      next = try OpenSSL.function("BIO_next")
      push = try OpenSSL.function("BIO_push")
      retain = try OpenSSL.function("BIO_up_ref")
      type = try OpenSSL.function("BIO_method_type")
      setData = try OpenSSL.function("BIO_set_data")
      data = try OpenSSL.function("BIO_get_data")
      setReady = try OpenSSL.function("BIO_set_init")
      setFlags = try OpenSSL.function("BIO_set_flags")
      clearFlags = try OpenSSL.function("BIO_clear_flags")
      copyRetry = try OpenSSL.function("BIO_copy_next_retry")
      read = try OpenSSL.function("BIO_read")
      control = try OpenSSL.function("BIO_ctrl")
      hasPending = try OpenSSL.function("SSL_has_pending")
      isInHandshake = try OpenSSL.function("SSL_in_init")
      readBIO = try OpenSSL.function("SSL_get_rbio")
      setReadBIO = try OpenSSL.function("SSL_set0_rbio")
      let newIndex: @convention(c) () -> Int32 = try OpenSSL.function("BIO_get_new_index")
      let newMethod: @convention(c) (Int32, UnsafePointer<CChar>) -> Method? = try OpenSSL.function(
        "BIO_meth_new")
      let setRead: @convention(c) (Method, Read) -> Int32 = try OpenSSL.function("BIO_meth_set_read")
      let setControl: @convention(c) (Method, Control) -> Int32 = try OpenSSL.function("BIO_meth_set_ctrl")
      let setDestroy: @convention(c) (Method, Destroy) -> Int32 = try OpenSSL.function("BIO_meth_set_destroy")
      index = newIndex() | netopt_bio_type_filter
      guard index > 0, let method = newMethod(index, "records") else { throw OpenSSL.MissingFunction() }
      _ = setRead(method, readCallback)
      _ = setControl(method, controlCallback)
      _ = setDestroy(method, destroyCallback)
      self.method = method
    }
  }

  private static let readCallback: Functions.Read = { bio, buffer, count in
    guard let functions = Functions.loaded, let bio, let buffer, let data = functions.pointee.data(bio) else {
      return -1
    }
    // The BIO holds the reader for as long as it is read from.
    return Unmanaged<RecordReader>.fromOpaque(data)._withUnsafeGuaranteedRef {
      $0.read(bio, into: buffer, count, functions.pointee)
    }
  }

  private static let controlCallback: Functions.Control = { bio, command, number, pointer in
    // To push and to pop concern this BIO alone. Twice for each record it is asked whether the kernel decrypts, which it does not behind a filter.
    guard command != netopt_bio_push, command != netopt_bio_pop, command != netopt_bio_get_ktls_receive,
      let functions = Functions.loaded, let bio,
      let next = functions.pointee.next(bio)
    else { return 0 }
    return functions.pointee.control(next, command, number, pointer)
  }

  private static let destroyCallback: Functions.Destroy = { bio in
    if let functions = Functions.loaded, let bio, let data = functions.pointee.data(bio) {
      Unmanaged<RecordReader>.fromOpaque(data).release()
    }
    return 1
  }
}
