import Glibc
import TestSupport
import Testing

@testable import Spool
@testable import SpoolWorker

/// Servers with quotas, servers that are away for days, and many servers: those with jobs of others do not notice, no
/// server is asked in vain again and again, and every job comes to its end.
@Suite(.serialized) struct ServerLimitTests {
  /// A spool with jobs `SERVER-NUMBER`, and when they came to their ends.
  /// `@unchecked Sendable`: one thread at a time has it.
  private final class Scene: @unchecked Sendable {
    let world: World
    let play: Play
    var whole: WholeWorkers
    /// When each job got into a directory, in seconds since the begin.
    private(set) var times: [Directory: [String: Int64]] = [:]
    let begin: Int64
    private var lastID = 0
    private(set) var jobs: [String] = []
    var servers: SimulatedServers { whole.servers }
    var now: Int64 { world.disk.clock / 1_000_000_000 }

    init(_ seed: UInt64, _ kind: FileSystemKind) throws {
      let world = World(seed: seed)
      world.disk.keeping = .all
      world.start("init") { _, system in
        do { try Spool.create(Play.location, system: system) } catch { world.blame("init: \(error)") }
      }
      world.run()
      let spool = try #require(world.disk.root.entries[Array("spool".utf8)]?.inode)
      let oracle = Oracle(world, spool: spool)
      play = Play(world, oracle, kind)
      whole = WholeWorkers(play, spool: spool)
      self.world = world
      begin = world.disk.clock / 1_000_000_000
      (servers.areFaulty, servers.sizes) = (false, [10, 3000])
      whole.tune = { options in
        (options.jobs, options.connections) = (16, 1)
      }
      let look = oracle.onChange
      oracle.onChange = { [unowned self] changes in
        look(changes)
        for directory in [Directory.done, .failed] {
          for change in changes
          where change.inode != nil && change.directory === spool.entries[Array(directory.rawValue.utf8)]?.inode {
            times[directory, default: [:]][String(decoding: change.name, as: UTF8.self)] = now - begin
          }
        }
      }
    }

    /// Drops jobs of these servers, in turns.
    func drop(_ count: Int, of servers: [String], _ more: String = "") {
      let first = lastID + 1
      lastID += count
      let names = (first...lastID).map { "\(servers[$0 % servers.count])-\($0)" }
      jobs += names
      play.start("dropper \(first)") { spool, _ in
        for (id, name) in zip(first..., names) {
          let text = "url: http://\(name.prefix { $0 != "-" })/\(1_000_000 + id)\n\(more)"
          _ = try Drops(spool).drop(text, as: JobName(FileName(name))!)
        }
      }
      world.run()
    }

    /// Whether all jobs are done or failed.
    var isOver: Bool { times.values.reduce(0) { $0 + $1.count } >= jobs.count }

    /// Has workers watch until all jobs have come to their ends, for so many seconds at most.
    func watch(_ workers: Int, for seconds: Int64) {
      for number in 1...workers {
        whole.work(number, host: number % 2 + 1, stays: Int(seconds) * 1000, until: { [unowned self] in isOver })
      }
      world.run()
    }

    /// The same, and every few minutes one of them dies, and another one starts.
    func watch(_ workers: Int, dying seconds: Int64) {
      let world = world
      world.start("supervisor") { [unowned self] _, _ in
        let end = now + seconds
        var last = 0
        while !isOver, now < end {
          while world.living("worker").count < workers {
            last += 1
            whole.work(last, host: last % 2 + 1, stays: Int(seconds) * 1000, until: { [unowned self] in isOver })
          }
          Host.current.wait(milliseconds: world.random(60_000...600_000))
          if let one = world.living("worker").randomElement(using: &world.generator), !isOver { world.kill(one) }
        }
      }
      world.run()
    }

    /// Jobs that are not done, and where each came to its end.
    var notDone: [String] {
      jobs.filter { times[.done]?[$0] == nil }.map { name in "\(name) \(times[.failed]?[name] == nil ? "" : "failed")" }
    }

    /// The last time at which a job of this server got into the directory; nil unless all of them did.
    func end(of server: String, in directory: Directory = .done) -> Int64? {
      let wanted = jobs.filter { $0.hasPrefix("\(server)-") }
      let found = wanted.compactMap { times[directory]?[$0] }
      return found.count == wanted.count ? found.max() : nil
    }
  }

  private static let shared = FileSystemKind(name: "nfs", sharing: .network, leases: .granted)

  /// Four workers of two hosts. A refusal that says when to come back is believed. Else each host's probes come after
  /// 10, 20, 40 … seconds.
  @Test(arguments: 1...2 as ClosedRange<UInt64>) func `a quota is not asked in vain`(_ seed: UInt64) async throws {
    let (scene, quota, window, tells) = try await onThread {
      let scene = try Scene(seed, Self.shared)
      let (quota, window) = (scene.world.pick([5, 20, 60]), Int64(scene.world.pick([60, 600])))
      let tells = scene.world.isChance(1, in: 2)
      scene.servers.limits["limited"] = .quota(quota, window: window, tells: tells)
      scene.drop(quota * 3, of: ["limited"])
      scene.drop(30, of: ["free"])
      scene.watch(4, for: 12 * window + 3600)
      return (scene, quota, window, tells)
    }
    let refused = scene.servers.counts["limited"]?.values.map(\.refused).max() ?? 0
    let probes = tells ? 2 : 20
    let what = Comment("\(quota) in \(window) s, \(tells ? "told" : "not told"): \(refused) refused in a window")
    #expect(refused <= scene.servers.perHost + probes, what)
    // Of all workers, one job probes.
    let later = (scene.servers.counts["limited"] ?? [:]).sorted { $0.key < $1.key }.dropFirst().map(\.value.refused)
    if tells { #expect(later.max() ?? 0 <= 2, "\(later)") }
    #expect(scene.end(of: "free").map { $0 <= 300 } == true, what)
    #expect(scene.end(of: "limited").map { $0 <= 5 * window + 900 } == true, what)
    #expect(scene.world.problems == [])
  }

  /// Cron starts a worker every six hours. One server is away for 72 hours, one for 30 days.
  @Test(arguments: 1...2 as ClosedRange<UInt64>) func `jobs wait for a server as long as they bear it`(
    _ seed: UInt64
  ) async throws {
    let (hours, day) = (Int64(3600), Int64(86_400))
    let scene = try await onThread {
      let scene = try Scene(seed, FileSystemKind(type: 0xEF53))
      scene.servers.limits = [
        "days": .away(until: scene.now + 72 * hours), "month": .away(until: scene.now + 30 * day),
      ]
      scene.drop(20, of: ["days"], "patience: 10d\n")
      scene.drop(100, of: ["month"], "patience: 10d\n")
      scene.drop(20, of: ["free"], "patience: 10d\n")
      for run in 1...(4 * 21) {
        scene.whole.work(run)
        scene.world.run()
        scene.world.disk.clock += 6 * hours * 1_000_000_000
      }
      return scene
    }
    let givenUp = scene.jobs.compactMap { scene.times[.failed]?[$0] }.sorted()
    #expect(scene.end(of: "free").map { $0 <= 300 } == true)
    #expect(scene.end(of: "days").map { 72 * hours...80 * hours ~= $0 } == true)
    // Not before, and by one run, or the next one of those that wait for their next attempt.
    let first = try #require(givenUp.first)
    #expect(10 * day...10 * day + 13 * hours ~= first && givenUp.count { $0 <= first + 60 } >= 50, "\(givenUp)")
    #expect(givenUp.count == 100 && givenUp[99] <= 11 * day, "\(givenUp)")
    let asked = scene.servers.counts.mapValues { $0.values.reduce(0) { $0 + $1.asked } }
    #expect(asked["days"] ?? 0 <= 60 && asked["month"] ?? 0 <= 150, "\(asked)")
    #expect(scene.world.problems == [])
  }

  /// Four workers of two hosts die one after the other. A job of a dead one waits for the lease, a minute.
  /// SIMULATE_JOBS=100000 plays so many.
  @Test func `the jobs of fifty servers are done, whoever dies`() async throws {
    let all = (1...50).map { "s\($0)" }
    let count = getenv("SIMULATE_JOBS").flatMap { Int(String(cString: $0)) } ?? 500
    let thousands = max(1, count / 1000)
    let scene = try await onThread {
      let scene = try Scene(1, Self.shared)
      for server in all[0..<10] { scene.servers.limits[server] = .quota(5 * thousands, window: 600, tells: true) }
      scene.drop(count, of: all)
      scene.watch(4, dying: Int64(6 * 3600 * thousands))
      return scene
    }
    #expect(scene.notDone.isEmpty, "\(scene.notDone.prefix(20)), after \(scene.now - scene.begin) s")
    let ends = all.map { scene.end(of: $0) ?? .max }
    let refused = all[0..<10].map { scene.servers.counts[$0]?.values.map(\.refused).max() ?? 0 }
    #expect(ends[10...].max() ?? .max <= 900 * Int64(thousands), "\(ends)")
    #expect(ends[0..<10].max() ?? .max <= 5400 * Int64(thousands), "\(ends)")
    // What is under way at both hosts, and what was when a worker died.
    #expect(refused.max() ?? .max <= 4 * scene.servers.perHost + 4, "\(refused)")
    #expect(scene.world.problems == [])
  }

  /// Some are away, some have quotas, and none of the others waits for them.
  @Test func `among fifty servers, each job takes no longer than if it were alone`() async throws {
    let all = (1...50).map { "s\($0)" }
    let scene = try await onThread {
      let scene = try Scene(1, FileSystemKind(type: 0xEF53))
      for server in all[0..<10] { scene.servers.limits[server] = .away(until: scene.now + 4000) }
      for server in all[10..<20] { scene.servers.limits[server] = .quota(5, window: 600, tells: true) }
      scene.drop(200, of: all)
      scene.watch(2, for: 6 * 3600)
      return scene
    }
    let ends = all.map { scene.end(of: $0) ?? .max }
    #expect(ends[20...].max() ?? .max <= 900)
    #expect(ends[10..<20].max() ?? .max <= 3600)
    #expect(ends[0..<10].max() ?? .max <= 6 * 3600)
    #expect(scene.world.problems == [])
  }
}
