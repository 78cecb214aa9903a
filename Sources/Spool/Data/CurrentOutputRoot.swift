internal import SystemPackage

/// Why nothing can be published at the moment.
package enum OutputRootProblem: Error, Sendable, CustomStringConvertible {
  /// The output root does not exist, or cannot be opened.
  case missing(SpoolError)
  /// It contains the spool, or is in the spool but not in `files`: a server's bytes could become jobs, `defaults` or
  /// hooks.
  case misplaced(String)
  /// The path of an output leads elsewhere since the payload was published.
  case moved(String)

  package var description: String {
    switch self {
    case .missing(let error): "\(error)"
    case .misplaced(let reason), .moved(let reason): reason
    }
  }
}

/// The output root that a worker publishes to. It goes by the path, which receipts name: a disk may be mounted over it,
/// or the directory may be renamed or made again.
package final class CurrentOutputRoot {
  package let location: String?

  private let spool: Spool
  fileprivate let reach: OutputReach
  /// The directory that the path led to when it was last asked.
  package private(set) var root: OutputRoot

  package init(_ location: String?, spool: Spool, reach: OutputReach = .below) throws(OutputRootProblem) {
    (self.location, self.spool, self.reach) = (location, spool, reach)
    root = try Self.open(location, spool, reach)
  }

  private static func open(_ location: String?, _ spool: Spool, _ reach: OutputReach) throws(OutputRootProblem)
    -> OutputRoot
  {
    let root: OutputRoot
    let misplacement: String?
    do throws(SpoolError) {
      root = try OutputRoot(location, spool: spool)
      misplacement = try root.misplacement(reach)
    } catch {
      throw .missing(error)
    }
    if let misplacement { throw .misplaced(misplacement) }
    return root
  }

  /// The directory that the path leads to now; opened again where it is another one than before.
  package func opened() throws(OutputRootProblem) -> OutputRoot {
    let isInPlace: Bool
    do throws(SpoolError) { isInPlace = try root.isInPlace() } catch { throw .missing(error) }
    if !isInPlace { root = try Self.open(location, spool, reach) }
    return root
  }

  package var fileSystem: FileSystem? { root.fileSystem }

  /// The place of `output`. Missing directories are made.
  /// - Parameter mode: of the payload; nil if only this user may enter the directories that are made.
  /// - Throws: ``OutputRootProblem``; ``SpoolError``, EXDEV where a directory of the path is one of the spool's.
  package func place(_ output: OutputPath, _ mode: PayloadMode? = nil) throws -> OutputPlace {
    let place = try opened().place(output, mode)
    try checkApart(place)
    return place
  }

  /// Makes sure that `output` still leads to the directory of `place`, as the receipt will say.
  /// - Throws: ``OutputRootProblem`` where it leads elsewhere or nowhere; ``SpoolError``.
  package func check(_ place: OutputPlace, _ output: OutputPath) throws {
    if try opened().leads(to: place, output) { return }
    throw OutputRootProblem.moved("the output's directory was moved, or another disk mounted there, meanwhile")
  }

  /// Refuses an output in the spool's own directories, where a mount below the root may lead.
  private func checkApart(_ place: OutputPlace) throws(SpoolError) {
    let directories = place.chain.dropFirst()
    if directories.isEmpty { return }
    let own = try NamedRoots(spool).ownDirectories()
    for directory in directories {
      guard !own.contains(where: { $0.isSameFile(as: directory.identity) }) else {
        throw SpoolError(
          call: .open, path: "\(directory.path.display) (a directory of the spool itself)", errno: .improperLink)
      }
    }
  }
}

/// The output roots that jobs name. The last one stays open: jobs in a row mostly have the same.
package final class NamedOutputRoots {
  private let spool: Spool
  private weak var last: CurrentOutputRoot?
  /// Of a get, which ends. A worker that stays must not keep a disk from being unmounted.
  private var kept: CurrentOutputRoot?

  package init(_ spool: Spool) { self.spool = spool }

  /// The output root that a job names. It may contain the spool if the payload is put directly into it, as a person's
  /// home directory does.
  package func root(_ name: String, for output: OutputPath) throws(OutputRootProblem) -> CurrentOutputRoot {
    let location: String
    do throws(SpoolError) { location = try NamedRoots(spool).target(of: name) } catch { throw .missing(error) }
    return try root(at: location, output.parents.isEmpty || spool.isBesideFiles ? .directly : .below)
  }

  /// - Parameter location: an absolute path.
  package func root(at location: String, _ reach: OutputReach) throws(OutputRootProblem) -> CurrentOutputRoot {
    if let last, last.location?.exact == location.exact, last.reach == reach {
      _ = try last.opened()
      return last
    }
    let root = try CurrentOutputRoot(location, spool: spool, reach: reach)
    last = root
    if spool.isBesideFiles { kept = root }
    return root
  }
}
