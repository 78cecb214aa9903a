internal import Glibc
internal import SystemPackage

/// What the workers of a spool may do together, as far as they see each other's locks: transfers from one server, and
/// bytes per second. All of it is in locks on ranges of one file, `servers/.slots`, which belong to the open file
/// (fcntl(2), F_OFD_SETLK): a worker that dies gives its own back. The file is never renamed or removed while workers
/// run. Its content, 16 bytes for each hash of a server, says when a server with a pace may be asked next.
///
/// | bytes | lock | meaning |
/// |---|---|---|
/// | `hosts`: 1024 for each hash of a server | exclusive | a transfer from that server |
/// | `limits` + N | shared | a worker starts at most N transfers from one server |
/// | `turns` + a hash of a server | exclusive | its turn is being taken |
/// | `probes` + a hash of a server | exclusive | a job of that worker probes it |
/// | `wants`: 4096 for each hash of a server | exclusive | that worker waits for a slot, and has less than its share |
/// | `seats` + S | exclusive | a worker has the seat S |
/// | `transfers` of a class: 4096 for each seat | exclusive, from the first on | a transfer of that worker |
/// | `rates` of a class + R | shared | a worker's transfers of that class get R bytes per second |
package final class SharedSlots {
  package static let classes = 3
  /// Maximum number of transfers from one server.
  package static let most = 1024
  private static let slotsOfSeat: Int64 = 4096
  private static let mostSeats: Int64 = 4096
  /// Bytes per second that count as no limit.
  private static let highestRate: UInt64 = 1 << 50

  // Beyond the content, because some file systems lock bytes against reading and writing as well.
  private static let hosts: Int64 = 1 << 42
  private static let limits: Int64 = 1 << 43
  private static let turns: Int64 = 1 << 43 + 1 << 20
  private static let probes: Int64 = 1 << 43 + 1 << 21
  private static let wants: Int64 = 1 << 43 + 1 << 32
  private static let seats: Int64 = 1 << 44
  private static func transfers(_ rateClass: Int) -> Int64 { 1 << 45 + Int64(rateClass) << 32 }
  private static func rates(_ rateClass: Int) -> Int64 { 1 << 52 + Int64(rateClass) << 51 }

  private let file: SharedFile
  private let seat: Int64
  /// What this worker says of itself by its locks.
  private var limit: Int?
  private var running: [Int]
  private var rates: [UInt64?]

  package struct Others: Sendable, Equatable {
    /// Their transfers, by class.
    package var transfers = [Int](repeating: 0, count: classes)
    /// Their lowest rates in bytes per second, by class; nil for none.
    package var rates = [UInt64?](repeating: nil, count: classes)

    package init() {}
  }

  /// Opens the file, and makes it if it is missing.
  /// - Throws: ``SpoolError``, also where the file system has no such locks.
  package init(of spool: Spool) throws(SpoolError) {
    try spool.system.makeDirectoryIfMissing(spool.root, ServerFiles.directory)
    let path = Path("servers/.slots")
    let file = try spool.system.create(spool.root, path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY)
    guard try file.status().isRegular else {
      throw SpoolError(call: .open, path: path.display, errno: .invalidArgument)
    }
    var seat: Int64 = 0
    while try !file.tryLock(Self.byte(Self.seats + seat)) {
      seat += 1
      if seat == Self.mostSeats { throw SpoolError(call: .lock, path: path.display, errno: .noLocks) }
    }
    self.file = file.shared()
    self.seat = seat
    running = [Int](repeating: 0, count: Self.classes)
    rates = [UInt64?](repeating: nil, count: Self.classes)
  }

  private static func byte(_ offset: Int64) -> Range<Int64> { offset..<offset + 1 }

  // MARK: servers

  /// Takes a slot of `server` for one transfer.
  /// - Parameter limit: how many slots it has.
  /// - Parameter except: slots that this worker has.
  /// - Returns: the slot's number; nil if there is none.
  package func take(of server: String, limit: Int, except own: Set<Int>) throws(SpoolError) -> Int? {
    let (start, count) = (Self.start(of: server), min(limit, Self.most))
    // Each worker looks elsewhere first: on a network file system, each look is a question to its server.
    let slots = (0..<count).lazy.map { (Int(self.seat) * 5 + $0) % count }
    for slot in slots where !own.contains(slot) { if try file.tryLock(Self.byte(start + Int64(slot))) { return slot } }
    return nil
  }

  package func give(_ slot: Int, of server: String) throws(SpoolError) {
    try file.unlock(Self.byte(Self.start(of: server) + Int64(slot)))
  }

  /// Lets the others see that this worker waits for a slot of `server`, and has less than its share.
  package func want(_ server: String) throws(SpoolError) {
    _ = try file.tryLock(Self.byte(Self.wants + Self.place(of: server) * Self.mostSeats + seat))
  }

  package func wantNothing() throws(SpoolError) { try file.unlock(Self.wants..<Self.wants + Self.mostSeats << 16) }

  /// Whether another worker waits for a slot of `server`, and has less than its share.
  package func isWanted(_ server: String) throws(SpoolError) -> Bool {
    let start = Self.wants + Self.place(of: server) * Self.mostSeats
    return try file.lockOfAnother(in: start..<start + Self.mostSeats) != nil
  }

  /// The number of the spool's workers, this one included.
  package func workers() throws(SpoolError) -> Int {
    1 + (try countOfOthers(in: Self.seats..<Self.seats + Self.mostSeats))
  }

  /// Two servers with one hash have their slots together.
  private static func start(of server: String) -> Int64 {
    let hash = server.utf8.stableHash
    return hosts + Int64((hash ^ hash >> 32) & 0xFFFF_FFFF) * Int64(most)
  }

  /// Lets the others see how many transfers from one server this worker starts at most.
  package func say(limit: Int) throws(SpoolError) {
    if limit == self.limit { return }
    _ = try file.tryLock(Self.byte(Self.limits + Int64(limit)), .shared)
    if let former = self.limit { try file.unlock(Self.byte(Self.limits + Int64(former))) }
    self.limit = limit
  }

  /// The lowest limit on transfers from one server that another worker has; `limit` if none is lower.
  package func lowestLimit(below limit: Int) throws(SpoolError) -> Int {
    let others = try lowest(in: Self.limits + 1..<Self.limits + Int64(max(2, limit)))
    return others.map { Int($0 - Self.limits) } ?? limit
  }

  /// The first byte in `range` that another worker has locked.
  private func lowest(in range: Range<Int64>) throws(SpoolError) -> Int64? {
    var (rest, found) = (range, Int64?.none)
    while !rest.isEmpty, let lock = try file.lockOfAnother(in: rest) {
      found = lock.lowerBound
      rest = rest.lowerBound..<lock.lowerBound
    }
    return found
  }

  /// - Returns: whether no other worker probes the server, so that this one does until it gives that back.
  package func takeProbe(of server: String) throws(SpoolError) -> Bool {
    try file.tryLock(Self.byte(Self.probes + Self.place(of: server)))
  }

  package func giveProbe(of server: String) throws(SpoolError) {
    try file.unlock(Self.byte(Self.probes + Self.place(of: server)))
  }

  // MARK: paces

  /// Takes the turn for a request to `server`, and notes when the next one is.
  /// - Parameter interval: milliseconds between two requests.
  /// - Parameter now: milliseconds since the epoch.
  /// - Returns: nil if the request may be sent; else milliseconds until it may be asked again.
  package func turn(at server: String, every interval: Int64, now: Int64) throws(SpoolError) -> Int64? {
    let lock = Self.byte(Self.turns + Self.place(of: server))
    guard try file.tryLock(lock) else { return 5 }
    do throws(SpoolError) {
      let wait = try untilTurn(at: server, every: interval, now: now)
      if wait == 0 { try note((server.utf8.stableHash, now + interval), at: Self.place(of: server)) }
      try file.unlock(lock)
      return wait == 0 ? nil : wait
    } catch {
      // The error that came first says more.
      try? file.unlock(lock)
      throw error
    }
  }

  /// Milliseconds until the next turn, at most `interval`.
  package func untilTurn(at server: String, every interval: Int64, now: Int64) throws(SpoolError) -> Int64 {
    var turn: Turn = (0, 0)
    let size = MemoryLayout<Turn>.size
    let offset = Self.place(of: server) * Int64(size)
    let count = try withUnsafeMutableBytes(of: &turn) { (bytes) throws(SpoolError) in
      try file.read(into: bytes, at: offset)
    }
    // What is further ahead was written with another pace, or by another clock.
    guard count == size, turn.server == server.utf8.stableHash, (0...interval).contains(turn.next - now) else {
      return 0
    }
    return turn.next - now
  }

  private func note(_ turn: Turn, at place: Int64) throws(SpoolError) {
    try withUnsafeBytes(of: turn) { (bytes) throws(SpoolError) in
      try file.write(bytes, at: place * Int64(MemoryLayout<Turn>.size))
    }
  }

  /// As the file has it: whose turn is next, and when, in milliseconds since the epoch.
  private typealias Turn = (server: UInt64, next: Int64)

  private static func place(of server: String) -> Int64 { Int64(server.utf8.stableHash & 0xFFFF) }

  // MARK: rates

  /// Lets the others see how many transfers of each class this worker runs, and its rates in bytes per second.
  package func say(transfers: [Int], rates: [UInt64?]) throws(SpoolError) {
    for rateClass in 0..<Self.classes {
      let start = Self.transfers(rateClass) + seat * Self.slotsOfSeat
      let (old, new) = (Int64(running[rateClass]), min(Int64(transfers[rateClass]), Self.slotsOfSeat))
      if new > old { _ = try file.tryLock(start + old..<start + new) }
      if new < old { try file.unlock(start + new..<start + old) }
      running[rateClass] = Int(new)
      let (former, rate) = (self.rates[rateClass], rates[rateClass].map { min($0, Self.highestRate) })
      if rate == former { continue }
      if let rate { _ = try file.tryLock(Self.byte(Self.rates(rateClass) + Int64(rate)), .shared) }
      if let former { try file.unlock(Self.byte(Self.rates(rateClass) + Int64(former))) }
      self.rates[rateClass] = rate
    }
  }

  /// Whether another worker's locks are seen. Most workers are alone.
  package func areOthers() throws(SpoolError) -> Bool { try file.lockOfAnother(in: Self.seats..<Int64.max) != nil }

  package func others() throws(SpoolError) -> Others {
    var others = Others()
    guard try areOthers() else { return others }
    for rateClass in 0..<Self.classes {
      let start = Self.transfers(rateClass)
      others.transfers[rateClass] = try countOfOthers(in: start..<start + Self.mostSeats * Self.slotsOfSeat)
      let rates = Self.rates(rateClass)
      others.rates[rateClass] = try lowest(in: rates..<rates + Int64(Self.highestRate) + 1).map { UInt64($0 - rates) }
    }
    return others
  }

  /// How many bytes of `range` other workers have locked.
  private func countOfOthers(in range: Range<Int64>) throws(SpoolError) -> Int {
    var (count, rest) = (0, [range])
    while let next = rest.popLast() {
      guard !next.isEmpty, let lock = try file.lockOfAnother(in: next) else { continue }
      count += lock.count
      rest += [next.lowerBound..<lock.lowerBound, lock.upperBound..<next.upperBound]
    }
    return count
  }
}
