package import NetOptCore

/// Performs a run: probe, first requests, then rounds over the targets that are left, one request at a time.
///
/// Cancelling the task stops the run: the round that is under way is dropped, and the report is partial.
package struct BenchRun: Sendable {
  /// The most samples that a run takes.
  package static let maximumSamples = 1_000_000

  private let settings: BenchSettings
  private let client: any BenchClient
  private let sampler: Sampler
  private let timeSource: any TimeSource
  private let sampleLimit: Int
  private let progress: @Sendable (BenchProgress) -> Void

  /// Makes a run.
  ///
  /// - Parameters:
  ///   - sampleLimit: the most samples that are taken; a round that would go beyond is not begun.
  ///   - progress: called after each round.
  package init(
    _ settings: BenchSettings, client: any BenchClient, timeSource: any TimeSource = SystemTimeSource(),
    sampleLimit: Int = BenchRun.maximumSamples,
    progress: @escaping @Sendable (BenchProgress) -> Void = { _ in }
  ) {
    self.settings = settings
    self.client = client
    self.timeSource = timeSource
    self.sampleLimit = sampleLimit
    self.progress = progress
    sampler = Sampler(client, settings.request)
  }

  /// Performs the run. Whatever fails is in the report.
  ///
  /// - Parameter warnings: what is known before it begins.
  package func report(_ context: RunContext, warnings: [BenchWarning] = []) async -> BenchReport {
    let started = timeSource.now()
    var report = BenchReport(settings, context, warnings: warnings)
    await lookAround(&report)
    await preflight(&report)
    let live = report.targets.indices.filter { report.targets[$0].exclusion == nil }
    if Task.isCancelled {
      report.stopReason = .interrupted
    } else if live.isEmpty {
      report.stopReason = .noTarget
    } else {
      for block in settings.blocks where report.stopReason == .completed {
        await measure(block, live, &report)
      }
    }
    report.elapsed = timeSource.now() - started
    report.warnings += report.connectionWarnings
    return report
  }

  /// Lets the start-up probe choose, and counts DNS's answers.
  private func lookAround(_ report: inout BenchReport) async {
    let host = settings.request.url.origin.host
    if settings.targets.contains(where: { $0.kind == .ip }) {
      do throws(NetOptError) {
        report.choice = try await client.startUpChoice(for: host)
      } catch  where error.code != .cancelled {
        report.warnings.append(BenchWarning("probe-failed", "the start-up probe failed: \(error.message)"))
      } catch {}
    }
    if settings.targets.contains(where: { $0.kind == .dns }) {
      // A failure is not lost: the first request over DNS meets it again, and excludes the target.
      let answers = try? await client.resolve(host, fresh: false).addresses
      let family = settings.request.options.family
      report.dnsAnswers = answers?.count { family == nil || $0.family == family }
    }
  }

  /// Sends each target a first request, which also opens the connection for the warm block.
  private func preflight(_ report: inout BenchReport) async {
    let targets = settings.targets
    var samples = [Sample?](repeating: nil, count: targets.count)
    await withTaskGroup(of: (Int, Sample?).self) { group in
      for (index, target) in targets.enumerated() {
        if index >= Preflight.concurrency, let (done, sample) = await group.next() { samples[done] = sample }
        group.addTask { (index, await sampler.sample(target, .pooled)) }
      }
      for await (done, sample) in group { samples[done] = sample }
    }
    let exclusions = Preflight.exclusions(after: samples)
    for index in targets.indices {
      report.targets[index].exclusion = exclusions[index]
      report.targets[index].tls = samples[index]?.tls
    }
    report.version =
      samples.indices.lazy.filter { exclusions[$0] == nil }.compactMap { samples[$0]?.version }
      .first
  }

  private func measure(_ block: Block, _ live: [Int], _ report: inout BenchReport) async {
    var plan = BenchPlan(seed: settings.seed, block: block, targets: live.count)
    var series = [SampleSeries](repeating: SampleSeries(), count: live.count)
    let targets = live.map { settings.targets[$0] }
    for _ in 0..<(block == .warm ? settings.warmup : 0) {
      guard await round(&plan, targets, block) != nil else {
        report.stopReason = .interrupted
        return
      }
    }
    let pace = BlockPace(settings, block, start: timeSource.now())
    var done = 0
    while pace.goesOn(after: done, at: timeSource.now()) {
      guard (report.rounds.values.reduce(0, +) + done + 1) * live.count <= sampleLimit else {
        report.stopReason = .sampleLimit
        report.warnings.append(
          BenchWarning("sample-limit", "the run stopped at \(sampleLimit) samples, the most that it takes"))
        break
      }
      guard let samples = await round(&plan, targets, block) else {
        report.stopReason = .interrupted
        break
      }
      for (index, sample) in samples { series[index].append(sample) }
      done += 1
      progress(pace.progress(after: done, at: timeSource.now()))
    }
    report.rounds[block] = done
    for (index, series) in zip(live, series) { report.targets[index].add(series, of: block) }
  }

  /// Takes one sample of each target, in the plan's next order; `nil` when the run was stopped meanwhile.
  private func round(
    _ plan: inout BenchPlan, _ targets: [BenchTarget], _ block: Block
  ) async -> [(Int, Sample)]? {
    var samples: [(Int, Sample)] = []
    for index in plan.next() ?? [] {
      guard !Task.isCancelled, let sample = await sampler.sample(targets[index], block.connection) else {
        return nil
      }
      samples.append((index, sample))
    }
    return samples
  }
}
