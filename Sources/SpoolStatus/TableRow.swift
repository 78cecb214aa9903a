package import Spool

/// What a line of the table is about, and can be selected for: a job or a standing order.
package struct TableSubject: Hashable, Sendable {
  /// The job's name, without its worker's.
  package let name: FileName
  /// Where it was when it was seen.
  package let directory: Directory

  /// A job that was seen there.
  package init(_ name: FileName, in directory: Directory) { (self.name, self.directory) = (name, directory) }
}

/// A job with its remark, a heading, or another line of the table.
package struct TableRow: Sendable {
  /// As wide as the terminal at most.
  package var lines: [StyledLine]
  /// What can be selected; nil for other lines.
  package var subject: TableSubject?
}

extension JobStatus {
  var subject: TableSubject { TableSubject(name, in: directory) }
}

extension OrderStatus {
  var subject: TableSubject {
    switch state {
    case .waiting: TableSubject(name, in: .standing)
    case .checking, .interrupted: TableSubject(name, in: .cur)
    case .paused: TableSubject(name, in: .hold)
    case .failed: TableSubject(name, in: .failed)
    }
  }
}
