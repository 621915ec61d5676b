import FoundationEssentials
import NetOptCore
import NetOptEngine
import NetOptLocking
import NetOptRouting

/// Keeps a client's list up to date: fetches newer issues, and reads the list file again when the file
/// changes. A list that fails a check never replaces the list in use.
///
/// The methods of the actor read and write files, and so block a thread. The files are at most 1 MiB, and
/// updates are rare.
actor ListUpdater {
  /// The tasks and the watch that `stop` must end. They are in a lock, so that any thread can call `stop`.
  private struct Running {
    /// The task of `keepUpToDate`.
    var task: Task<Void, Never>?
    /// The running refresh: the task in `refreshing`.
    var refresh: Task<NetOptError?, Never>?
    /// The task that waits until the list in use expires. `nil` without observers or an expiry date.
    var expiry: Task<Void, Never>?
    var watch: FileWatch?
    var isStopped = false
  }

  private nonisolated let running = Locked(Running())
  private nonisolated let configuration: ClientConfiguration
  /// The list in use and its status. Only this updater sets them.
  private nonisolated let inUse: ListInUse
  private nonisolated let timeSource: any TimeSource
  /// Makes the client use a list.
  private let adopt: @Sendable (EndpointList) -> Void
  private let fetch: ListFetch
  /// Keeps last good copies and records of refreshes. `nil` if the client keeps none (`listStore`).
  private let store: ListStore?

  /// The configured list and the newest fetched list.
  private var choice: ListChoice
  /// When to refresh. `nil` when the list in use names no refresh URL, and until `followSchedule` runs.
  private var schedule: RefreshSchedule?
  /// The error of the last attempt to read the list file, if this attempt failed.
  private var fileError: NetOptError?
  /// The error of the last attempt to refresh the list, or to load or save its copy, if it failed.
  private var refreshError: NetOptError?
  /// When a refresh last succeeded, in this process or an earlier one (`ListStatus.lastCheck`).
  private var lastCheck: Date?
  /// The running refresh; `nil` when none runs. A caller of `refresh` waits for its end.
  private var refreshing: Task<NetOptError?, Never>?
  /// The wait of `keepUpToDate` until `schedule.due`. A change of the schedule cancels the wait.
  private var sleep: Task<Void, Never>?

  /// Makes an updater, which does nothing until `start`. `perform` sends a request through the client.
  init(
    _ configuration: ClientConfiguration, _ choice: ListChoice, _ inUse: ListInUse,
    _ timeSource: any TimeSource, adopt: @escaping @Sendable (EndpointList) -> Void,
    perform: @escaping @Sendable (NetOptRequest) async throws(NetOptError) -> NetOptResponse
  ) {
    self.configuration = configuration
    self.choice = choice
    self.inUse = inUse
    self.timeSource = timeSource
    self.adopt = adopt
    fetch = ListFetch(isSigned: !configuration.trustedKeys.isEmpty, perform: perform)
    store = configuration.listStore
    fileError = nil
    refreshError = inUse.status.lastError
    lastCheck = inUse.status.lastCheck
  }

  // MARK: Start and stop

  /// Starts to fetch newer issues, to watch the list file, and to wait for the expiry of the list.
  ///
  /// - Parameters:
  ///   - loop: the event loop that watches the file; with `nil` the updater does not watch it.
  ///   - identities: the identities that the file and its signature file had before they were read.
  nonisolated func start(on loop: EventLoop?, identities: [FileIdentity?]) {
    let files = configuration.listUpdates.watchFile ? configuration.listFiles : []
    running.withLock { running in
      guard !running.isStopped else { return }
      if let loop, !files.isEmpty {
        let watch = FileWatch(
          loop, files, known: identities,
          onChange: { [weak self] in Task { await self?.fileDidChange() } },
          onFailure: { [weak self] error in Task { await self?.watchDidFail(error) } })
        watch.start()
        running.watch = watch
      }
      running.expiry = expiry(of: inUse.list)
      guard configuration.listUpdates.refresh else { return }
      guard inUse.list?.refresh != nil || !files.isEmpty else { return }
      running.task = Task { await self.keepUpToDate() }
    }
  }

  /// Stops all tasks. Call it before the event loop and the transport stop.
  nonisolated func stop() {
    let running = running.withLock { running in
      defer { running = Running(isStopped: true) }
      return running
    }
    running.task?.cancel()
    running.refresh?.cancel()
    running.expiry?.cancel()
    running.watch?.stop()
  }

  // MARK: Expiry

  /// The longest single wait, in seconds. Lists expire by the system clock, which may be set meanwhile.
  private static let longestWaitForExpiry = 3600.0

  /// Starts a task that tells the observers when a list has expired. `nil` without observers or expiry.
  private nonisolated func expiry(of list: EndpointList?) -> Task<Void, Never>? {
    guard let list, let expires = list.expires, !configuration.listObservers.isEmpty else { return nil }
    return Task { [weak self] in
      while true {
        let rest = expires.timeIntervalSince(Date())
        // This also ends the loop for a date that is NaN.
        guard rest > 0 else { break }
        do { try await Task.sleep(for: .seconds(min(rest, Self.longestWaitForExpiry))) } catch { return }
      }
      await self?.listDidExpire(list)
    }
  }

  /// Tells the observers that a list has expired, unless another list came into use since the wait ended.
  private func listDidExpire(_ list: EndpointList) {
    guard choice.list == list, let error = inUse.warning(at: Date()) else { return }
    notifyObservers { $0.listDidExpire(error, $1) }
  }

  // MARK: Refreshing

  /// Refreshes the list each time the schedule says so, until the task is cancelled.
  private func keepUpToDate() async {
    followSchedule()
    while !Task.isCancelled {
      let rest = schedule.map { $0.due - timeSource.now() } ?? .seconds(86_400)
      if rest <= .zero {
        _ = await refreshOnce()
      } else {
        let sleep = Task { _ = try? await Task.sleep(for: rest) }
        self.sleep = sleep
        await withTaskCancellationHandler {
          await sleep.value
        } onCancel: {
          sleep.cancel()
        }
      }
    }
  }

  /// Adapts the schedule to the `refresh` of the list in use, and ends the wait of `keepUpToDate`.
  private func followSchedule() {
    guard let every = choice.list.refresh?.every else {
      schedule = nil
      return
    }
    let now = timeSource.now()
    if schedule != nil {
      schedule?.follow(every: every, at: now)
    } else {
      var record = root.flatMap { store?.record(of: $0) } ?? RefreshSchedule.Record()
      // Without a copy, the list from the last successful refresh is lost, or is no longer accepted. So the
      // record of this success must not delay the next refresh.
      if choice.fetched == nil { record.checked = nil }
      schedule = RefreshSchedule(
        every: every, record: record, now: now, wall: Date(), seed: .random(in: 0 ... .max))
    }
    sleep?.cancel()
  }

  /// The refresh URL of the configured list, by which the store finds copy and record; `nil` without one. A
  /// fetched list may name another refresh URL.
  private var root: HTTPURL? { choice.configured.list.refresh?.url }

  /// Fetches a newer list now, or waits for the end of a running refresh.
  ///
  /// - Throws: the reason why the refresh brought no good list.
  func refresh() async throws(NetOptError) {
    guard choice.list.refresh != nil else {
      throw NetOptError(
        .invalidConfiguration, phase: .list,
        "the list in use (\(choice.status.source)) names no URL for newer lists; add refresh to it")
    }
    if schedule == nil { followSchedule() }
    if let error = await refreshOnce() { throw error }
  }

  /// Begins a refresh, or waits for the running one. Returns why it brought no good list, or why the list,
  /// which is in use, could not be saved; otherwise `nil`.
  private func refreshOnce() async -> NetOptError? {
    let task = refreshing ?? beginRefresh()
    // Other callers may wait for this refresh, so a caller that is cancelled must not cancel the refresh. The
    // cancellation only ends the stream of this caller.
    let (ends, end) = AsyncStream<NetOptError?>.makeStream()
    Task {
      end.yield(await task.value)
      end.finish()
    }
    for await error in ends { return error }
    return NetOptError(.cancelled, phase: .list, "waiting for the refresh of the list was cancelled")
  }

  /// Starts a refresh in a task, which `stop` can cancel.
  private func beginRefresh() -> Task<NetOptError?, Never> {
    let task = Task { await self.fetchNewer() }
    refreshing = task
    let isStopped = running.withLock { running in
      running.refresh = task
      return running.isStopped
    }
    if isStopped { task.cancel() }
    return task
  }

  /// Performs a refresh. Returns the same as `refreshOnce`.
  private func fetchNewer() async -> NetOptError? {
    defer {
      refreshing = nil
      running.withLock { $0.refresh = nil }
    }
    guard let url = choice.list.refresh?.url else { return nil }
    schedule?.began(wall: Date())
    keepRecord()
    let fetched = choice.fetched
    let asked = root
    do throws(ListFetch.Failure) {
      // An entity tag is valid only for the URL that it came from.
      let tag = fetched?.copy.source == url.description ? fetched?.copy.tag : nil
      let answer = try await fetch.list(from: url, unless: tag)
      // The list file has changed meanwhile and names another refresh URL.
      if root != asked { return nil }
      switch answer {
      case .unchanged: try accept(nil, from: url)
      case .copy(let copy): try accept(copy, from: url)
      }
      return refreshError
    } catch {
      // The list file has changed meanwhile, and this error is about its former refresh URL.
      if root != asked { return nil }
      // The client shuts down. That is no failure of the refresh, and the record has the attempt already.
      if Task.isCancelled || running.withLock(\.isStopped) { return error.error }
      schedule?.failed(at: timeSource.now(), wall: Date(), retryAfter: error.retryAfter)
      keepRecord()
      let reason = Self.error(error.error, choice.list)
      report(refresh: reason)
      return reason
    }
  }

  /// Checks and uses a fetched list. `copy` is `nil` when the server's list has not changed.
  private func accept(_ copy: ListStore.Copy?, from url: HTTPURL) throws(ListFetch.Failure) {
    var isNewer = false
    if let copy {
      do throws(NetOptError) {
        let list = try configuration.listReader.check(
          copy.list, signature: copy.signature, name: url.shown, at: Date())
        isNewer = try ListAcceptance.isNewer(list.list, than: choice.list, from: url.shown)
        choice.fetched = ListChoice.Fetched(list: list, copy: copy, source: .fetched(from: url))
      } catch {
        throw ListFetch.Failure(error: error, retryAfter: nil)
      }
    }
    let now = Date()
    schedule?.succeeded(at: timeSource.now(), wall: now)
    lastCheck = now
    refreshError = (copy ?? lostCopy).flatMap { keep($0) }
    keepRecord()
    if isNewer {
      use()
    } else {
      publish()
      if let refreshError {
        notifyObservers { $0.listDidFail(refreshError, $1) }
      } else {
        notifyObservers { $0.listIsCurrent($1) }
      }
    }
  }

  /// Saves a copy for the next start. Returns the error if the copy could not be saved.
  private func keep(_ copy: ListStore.Copy) -> NetOptError? {
    guard let root, let store, let serial = choice.fetched?.list.list.serial else { return nil }
    let reader = configuration.listReader
    do throws(NetOptError) {
      try store.keep(copy, of: root) { present in
        let list = try? reader.check(
          present.list, signature: present.signature, name: "the last good copy", at: Date(),
          allowExpired: true)
        return list.map { $0.list.serial > serial } ?? false
      }
      return nil
    } catch {
      return NetOptError(
        error.code, phase: .list,
        "the list with serial \(serial) is in use, but netopt could not save it for the next start: \(error.message)",
        underlying: error.underlying)
    }
  }

  /// The fetched list, if the disk has no complete copy of it, so that it must be saved again; else `nil`.
  private var lostCopy: ListStore.Copy? {
    guard let root, let store else { return nil }
    let kept = (try? store.copy(of: root)) ?? nil
    return kept == nil ? choice.fetched?.copy : nil
  }

  /// Saves the record of refreshes. Ignores an error, because only a later process needs the record.
  private func keepRecord() {
    if let root, let schedule { try? store?.keep(schedule.record, of: root) }
  }

  // MARK: The list file

  /// Tells the observers that the file cannot be watched. The status does not have this error, because the
  /// list is as good as before and the client still notices changes, only later.
  private func watchDidFail(_ error: NetOptError) { notifyObservers { $0.listDidFail(error, $1) } }

  /// Reads the list file again, because it has changed, and uses its list if the list is valid.
  private func fileDidChange() {
    guard case .file(let path) = configuration.list else { return }
    do throws(NetOptError) {
      let read = try configuration.listReader.file(path, at: Date(), allowExpired: false)
      fileError = nil
      guard read.bytes != choice.configured.bytes else {
        // Another key may have signed the same list.
        choice.configured.signedBy = read.signedBy
        return publish()
      }
      let before = root
      choice.configured = ListChoice.Configured(
        list: read.list, source: .file(path), bytes: read.bytes, signedBy: read.signedBy)
      if root != before { resetRefreshState() }
      use()
    } catch {
      report(file: Self.error(error, choice.list))
    }
  }

  /// Loads the copy and `lastCheck` for the new refresh URL of the configured list. Resets the schedule.
  private func resetRefreshState() {
    schedule = nil
    choice.fetched = nil
    refreshError = nil
    lastCheck = root.flatMap { store?.record(of: $0).checked }
    do throws(NetOptError) {
      choice.fetched = try configuration.lastGoodCopy(of: choice.configured.list)
    } catch {
      refreshError = error
    }
  }

  // MARK: Reporting

  /// Makes the client use the list of `choice`, unless it already does. Publishes the status either way.
  private func use() {
    let list = choice.list
    let isOther = list != inUse.list
    publish()
    if isOther {
      adopt(list)
      running.withLock { running in
        running.expiry?.cancel()
        running.expiry = running.isStopped ? nil : expiry(of: list)
      }
    }
    if configuration.listUpdates.refresh { followSchedule() }
    if isOther { notifyObservers { $0.listDidChange($1) } }
  }

  /// Records a new error of the list file or of a refresh in the status, and tells the observers.
  private func report(file: NetOptError? = nil, refresh: NetOptError? = nil) {
    if let file { fileError = file }
    if let refresh { refreshError = refresh }
    publish()
    if let error = file ?? refresh { notifyObservers { $0.listDidFail(error, $1) } }
  }

  /// Writes the list of `choice` and its status to `inUse`.
  private func publish() {
    var status = choice.status
    status.lastCheck = lastCheck
    status.lastError = fileError ?? refreshError
    inUse.set(choice.list, status)
  }

  private func notifyObservers(_ event: (any ListObserver, ListStatus) -> Void) {
    let status = inUse.status
    for observer in configuration.listObservers { event(observer, status) }
  }

  /// Adds to the message of an error that `list` stays in use.
  private static func error(_ error: NetOptError, _ list: EndpointList) -> NetOptError {
    NetOptError(
      error.code, phase: .list, "\(error.message); the list with serial \(list.serial) stays in use",
      endpoint: error.endpoint, underlying: error.underlying, isRetryable: error.isRetryable,
      route: error.route)
  }
}
