import NetOptCore

/// Performs a run: the start-up probe, a first request to each target, and the rounds of all blocks. Only the
/// targets whose first request succeeded take part in the rounds.
///
/// Cancelling the task stops the run. The run then drops the unfinished rounds, and the report is partial.
package struct BenchRun: Sendable {
  /// The maximum number of samples in a run.
  package static let maximumSamples = 1_000_000

  private let settings: BenchSettings
  /// The first of the run's clients. Only this client resolves names and runs the start-up probe.
  private let client: any BenchClient
  /// One sampler for each client.
  private let samplers: [Sampler]
  private let clock: any BenchClock
  /// The maximum number of samples. Tests set a lower maximum than `maximumSamples`.
  private let sampleLimit: Int
  /// Returns the processor time that this process has used since its start.
  private let cpuTime: @Sendable () -> Duration
  /// Called with the progress after each completed round. Several tasks may call it at the same time.
  private let progress: @Sendable (BenchProgress) -> Void

  /// Makes a run.
  ///
  /// - Parameters:
  ///   - clients: one client for each connection to a target (`BenchSettings.concurrency`); at least one. The
  ///     first client also resolves names and probes.
  ///   - sampleLimit: the maximum number of samples. The run does not begin a round that would exceed the
  ///     limit.
  ///   - cpuTime: returns the processor time that this process has used since its start.
  ///   - progress: called after each completed round. Several tasks may call it at the same time.
  package init(
    _ settings: BenchSettings, clients: [any BenchClient], clock: any BenchClock = SystemBenchClock(),
    sampleLimit: Int = BenchRun.maximumSamples, cpuTime: @escaping @Sendable () -> Duration = { .zero },
    progress: @escaping @Sendable (BenchProgress) -> Void = { _ in }
  ) {
    precondition(!clients.isEmpty, "a run needs a client")
    self.settings = settings
    client = clients[0]
    self.clock = clock
    self.sampleLimit = sampleLimit
    self.cpuTime = cpuTime
    self.progress = progress
    samplers = clients.map { Sampler($0, settings.request, timeSource: clock) }
  }

  /// Performs the run. A failure does not throw an error: the report contains it.
  ///
  /// - Parameter warnings: the warnings known before the run begins. They come first in the report.
  package func report(_ context: RunContext, warnings: [BenchWarning] = []) async -> BenchReport {
    let started = clock.now()
    var report = BenchReport(settings, context, warnings: warnings)
    let answers = await probeAndResolve(&report)
    await preflight(&report)
    let live = report.targets.indices.filter { report.targets[$0].exclusion == nil }
    if Task.isCancelled {
      report.stopReason = .interrupted
    } else if live.isEmpty {
      report.stopReason = .noTarget
    } else {
      let used = cpuTime()
      for block in settings.blocks where report.stopReason == .completed {
        await measure(block, live, &report)
      }
      report.cpuTime = cpuTime() - used
      await resolveAgain(answers, &report)
    }
    report.elapsed = clock.now() - started
    report.warnings += BenchWarning.found(in: report)
    report.comparisons = Comparisons(report).all
    report.verdicts = Objective.verdicts(report)
    return report
  }

  /// Runs the start-up probe if an address of the list is a target. Resolves the host name if DNS is a
  /// target.
  ///
  /// - Returns: the addresses that DNS answered; `nil` without a DNS target or when the lookup failed.
  private func probeAndResolve(_ report: inout BenchReport) async -> Set<IPAddress>? {
    let host = settings.request.url.origin.host
    if settings.targets.contains(where: { $0.kind == .ip }) {
      do throws(NetOptError) {
        let choice = try await client.startUpChoice(for: host)
        report.choice = choice.chosen
        report.probeRanking = choice.ranking
      } catch  where error.code != .cancelled {
        report.warnings.append(BenchWarning("probe-failed", "the start-up probe failed: \(error.message)"))
      } catch {}
    }
    guard settings.targets.contains(where: { $0.kind == .dns }) else { return nil }
    // This step may ignore a failure: the first request over DNS fails in the same way and excludes the
    // target.
    let answers = await addresses(fresh: false)
    report.dnsAnswers = answers?.count
    return answers
  }

  /// The addresses that DNS answers for the host of the request, limited to the address family of the
  /// settings; `nil` when the lookup fails.
  ///
  /// - Parameter fresh: whether the client ignores cached DNS answers.
  private func addresses(fresh: Bool) async -> Set<IPAddress>? {
    let family = settings.request.options.family
    let answers = try? await client.resolve(settings.request.url.origin.host, fresh: fresh).addresses
    return answers.map { Set($0.filter { family == nil || $0.family == family }) }
  }

  /// Resolves the host name again after the blocks. Warns when DNS answers other addresses than before: the
  /// DNS target was then not the same during the whole run.
  ///
  /// - Parameter before: the answers before the blocks; `nil` when there is nothing to compare.
  private func resolveAgain(_ before: Set<IPAddress>?, _ report: inout BenchReport) async {
    guard let before, !Task.isCancelled, let after = await addresses(fresh: true), after != before else {
      return
    }
    func list(_ addresses: Set<IPAddress>) -> String {
      addresses.map(\.description).sorted().joined(separator: ", ")
    }
    report.warnings.append(
      BenchWarning("dns-changed", "DNS answered \(list(before)) before the run and \(list(after)) after it"))
  }

  /// Sends a first request from each client to each target. These requests open the connections that the warm
  /// block uses. The requests of the first client decide which targets the run measures. When one of them
  /// fails, the first client sends it a second time, because a network may lose a single packet. The other
  /// clients leave out the targets that failed.
  private func preflight(_ report: inout BenchReport) async {
    let targets = settings.targets
    var samples = [Sample?](repeating: nil, count: targets.count)
    for (index, sample) in await firstRequests(samplers[0], targets.indices) { samples[index] = sample }
    let failed = targets.indices.filter { samples[$0].map { $0.kind != .ok } ?? false }
    for (index, sample) in await firstRequests(samplers[0], failed) {
      // `nil` when the run was cancelled. The sample of the first request then stays.
      if let sample { samples[index] = sample }
    }
    let usable = targets.indices.filter { samples[$0]?.kind == .ok }
    for sampler in samplers.dropFirst() { _ = await firstRequests(sampler, usable) }
    let exclusions = Preflight.exclusions(after: samples)
    for index in targets.indices {
      report.targets[index].exclusion = exclusions[index]
      report.targets[index].tls = samples[index]?.tls
      report.targets[index].firstTimings = samples[index]?.kind == .ok ? samples[index]?.timings : nil
    }
    report.version =
      samples.indices.lazy.filter { exclusions[$0] == nil }.compactMap { samples[$0]?.version }
      .first
  }

  /// Sends a request to each of the given targets, at most `Preflight.concurrency` at a time.
  ///
  /// - Returns: the index of each target, with its sample; `nil` instead of the sample when the task was
  ///   cancelled.
  private func firstRequests(_ sampler: Sampler, _ indices: some Collection<Int>) async -> [(Int, Sample?)] {
    await withTaskGroup(of: (Int, Sample?).self) { group in
      var found: [(Int, Sample?)] = []
      for (begun, index) in indices.enumerated() {
        if begun >= Preflight.concurrency, let next = await group.next() { found.append(next) }
        let target = settings.targets[index]
        group.addTask { (index, await sampler.sample(target, .pooled)) }
      }
      for await next in group { found.append(next) }
      return found
    }
  }

  /// Performs the warm-up rounds and the rounds of a block, and adds the results to the report.
  ///
  /// - Parameter live: the indices of the targets to measure.
  private func measure(_ block: Block, _ live: [Int], _ report: inout BenchReport) async {
    var plan = BenchPlan(seed: settings.seed, block: block, targets: live.count)
    let targets = live.map { settings.targets[$0] }
    if block == .warm {
      for _ in 0..<settings.warmup {
        let order = plan.next() ?? []
        for sampler in samplers {
          for index in order {
            guard !Task.isCancelled, await sampler.sample(targets[index], block.connection) != nil else {
              report.stopReason = .interrupted
              report.rounds[block] = 0
              return
            }
          }
        }
      }
    }
    let taken = report.rounds.values.reduce(0, +)
    let record = BlockRecord(
      plan, ids: targets.map(\.id), pace: BlockPace(settings, block, start: clock.now()),
      roundLimit: sampleLimit / live.count - taken, progress: progress)
    let run = BlockRun(block, targets: targets, samplers: samplers, record: record, clock: clock)
    if let rate = settings.rate {
      await run.openLoop(rate: rate)
    } else {
      await run.closedLoop(streams: settings.streams)
    }
    let (rounds, series, stop) = record.result
    if let stop { report.stopReason = stop }
    if stop == .sampleLimit {
      report.warnings.append(
        BenchWarning("sample-limit", "the run stopped at \(sampleLimit) samples, the maximum of a run"))
    }
    report.rounds[block] = rounds
    for (index, series) in zip(live, series) {
      report.targets[index].add(series, of: block, order: settings.order)
    }
  }
}
