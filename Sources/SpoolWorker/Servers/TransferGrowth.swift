internal import Spool

struct TransferLimits {
  /// Maximum number of parallel transfers.
  var jobs: Int
  /// Maximum number of parallel transfers from one scheme, host and port.
  var perHost: Int
  /// Maximum number of jobs past their transfer; at this number no other starts.
  var commits: Int
  /// Those of `defaults` on transfers from one server.
  var rules: [ServerRule<Int>] = []
  /// Whether servers begin with few transfers and get as many as bring more.
  var areGrowing = false
  var growths: [String: TransferGrowth] = [:]
  /// How many slots of each server stay free.
  private(set) var spare = 0

  /// The limits for a job of low priority, which never takes the last slot of several.
  var forLow: TransferLimits {
    var limits = self
    (limits.jobs, limits.spare) = (max(1, jobs - 1), 1)
    return limits
  }

  init(_ options: WorkerOptions) {
    self.init(jobs: options.jobs, perHost: options.perHost, commits: WorkerOptions.mostCommits)
    (rules, areGrowing) = (options.defaults.servers.perHost, options.perHostGrows)
  }

  init(jobs: Int, perHost: Int, commits: Int) { (self.jobs, self.perHost, self.commits) = (jobs, perHost, commits) }

  /// The most transfers from this server. What `defaults` say of its host takes the place of ``perHost``.
  func most(of server: String) -> Int {
    if let own = ownMost(of: server) { return max(1, own - spare) }
    return max(1, (areGrowing ? min(perHost, growths[server]?.most ?? ServerNote.firstTransfers) : perHost) - spare)
  }

  /// What `defaults` say; nil for nothing.
  func ownMost(of server: String) -> Int? { rules.most(from: server, limit: perHost) }
}

/// How many transfers at once one server gets: as many as bring more. Pure.
///
/// A server begins with ``ServerNote/firstTransfers``. While it has all that it may have, the bytes that come are
/// measured. Then it gets twice as many; if these bring at least a quarter more it goes on so, else it goes back, and
/// rests before it tries again. Where they bring much more, that shows early. A server that refuses is
/// ``ServerRests``' concern.
///
/// Far from a server, a transfer waits long for its first byte, and longer on a new connection. So something has to
/// come twice for each transfer, on the average, before more of them are measured, and again while they are.
///
/// Times are milliseconds of the loop's clock.
struct TransferGrowth {
  /// For so long a number is measured, or for so long where it is clear that it brings more…
  static let (window, shortWindow): (Int64, Int64) = (400, 100)
  /// …and kept when it has turned out to be the best.
  static let rest: Int64 = 60_000
  private static let (gain, clearGain) = (1.25, 1.6)

  private(set) var most = ServerNote.firstTransfers
  /// The number before, and the bytes per millisecond that it brought; nil while none is compared.
  private var before: (number: Int, rate: Double)?
  /// Since when there are as many as there may be, and what had come by then.
  private var began: (time: Int64, bytes: UInt64, receipts: Int)?
  /// There are more than before, and it is not known whether all have their connections.
  private var isWarmingUp = false
  private var restsUntil: Int64 = .min
  private var bytes: UInt64 = 0
  /// How many times something came; each transfer counts once for each look.
  private var receipts = 0

  /// The most transfers that there were since the last look: between two of many small files, one fewer runs.
  private var peak = 0

  /// Another transfer begins, and so many run.
  mutating func start(_ transfers: Int) { peak = max(peak, transfers) }

  /// A transfer has brought so many bytes. To be called once for each before ``look(transfers:limit:at:)``.
  mutating func receive(_ count: UInt64) {
    bytes &+= count
    receipts &+= 1
  }

  /// To be called a few times a second while there are transfers.
  /// - Parameter transfers: how many there are.
  /// - Parameter limit: how many there may be, whatever they bring.
  mutating func look(transfers: Int, limit: Int, at now: Int64) {
    peak = max(peak, transfers)
    judge(limit: limit, at: now)
    peak = transfers
  }

  /// To be called also right before a transfer ends: small files come more often than anybody looks.
  mutating func judge(limit: Int, at now: Int64) {
    guard peak >= min(most, limit), now >= restsUntil else {
      // What fewer of them bring says nothing of the number.
      began = nil
      return
    }
    guard let began else {
      if receipts > 0 { self.began = (now, bytes, receipts) }
      return
    }
    guard receipts &- began.receipts >= 2 * most else { return }
    if isWarmingUp {
      (isWarmingUp, self.began) = (false, (now, bytes, receipts))
      return
    }
    let time = now - began.time
    let rate = Double(bytes &- began.bytes) / Double(max(1, time))
    let isClear = most < limit && before.map { rate >= $0.rate * Self.clearGain } ?? true
    guard time >= (isClear ? Self.shortWindow : Self.window) else { return }
    self.began = nil
    if let before, rate < before.rate * Self.gain { return settle(at: before.number, at: now) }
    guard most < limit else { return settle(at: most, at: now) }
    (before, most, isWarmingUp) = ((most, rate), min(2 * most, limit), true)
  }

  private mutating func settle(at number: Int, at now: Int64) {
    (most, before, began, isWarmingUp, restsUntil) = (number, nil, nil, false, now + Self.rest)
  }
}
