internal import Spool
internal import SystemPackage

extension OrderStatus {
  /// - Parameter next: the time of modification of an order that waits.
  init(_ name: FileName, _ state: State, _ text: JobText, next: Timestamp?) {
    self.init(name, state)
    let checks = text.journal.checks
    checked = checks.lastTime
    entries = checks.lastTime == nil ? nil : checks.entries
    problems = checks.problems
    self.next = next
    problem = text.journal.attempts.lastFailure.map { JobStatus.Problem($0) }
  }
}

extension SnapshotReader {
  /// Adds the orders that wait for their next check, by their names.
  func addOrders(_ names: [FileName], _ spool: Spool, limit: Int, _ snapshot: inout SpoolSnapshot) throws(SpoolError) {
    snapshot.orderCount += max(0, names.count - limit)
    let sorted = names.sorted { $0.bytes.lexicographicallyPrecedes($1.bytes) }
    for name in sorted.prefix(limit) {
      do throws(SpoolError) {
        guard let status = try spool.status(.standing, name), let text = try spool.job(.standing, name) else {
          continue
        }
        let now = snapshot.time.seconds
        let isDue = try spool.isDue(name, modified: status.modified, in: .standing, at: now)
        let next = isDue ? now : status.modified
        snapshot.add(OrderStatus(name, .waiting, text, next: Timestamp(seconds: next)))
      } catch  where error.isUnreadable {
        snapshot.add(OrderStatus(name, .waiting))
      }
    }
  }
}

extension SpoolSnapshot {
  mutating func add(_ order: OrderStatus) {
    orders.append(order)
    orderCount += 1
  }
}
