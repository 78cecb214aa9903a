internal import Glibc
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

/// Where the payloads of an output root may be.
package enum OutputReach: Sendable {
  /// In the root and in all directories below it. Such a root must not contain the spool.
  case below
  /// In the root itself only, so none can get into the spool, even if the root contains the spool.
  case directly
}

/// The output root that a worker publishes to. It goes by the path, which receipts name: a disk may be mounted over it,
/// or the directory may be renamed or made again.
package final class CurrentOutputRoot {
  /// As in ``OutputRoot/location``.
  package let location: String?

  private let spool: Spool
  private let reach: OutputReach
  private var root: OutputRoot

  /// - Parameter location: as for ``OutputRoot/init(_:spool:)``.
  /// - Throws: ``OutputRootProblem``.
  package init(_ location: String?, spool: Spool, reach: OutputReach = .below) throws(OutputRootProblem) {
    self.location = location
    self.spool = spool
    self.reach = reach
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
  /// - Throws: ``OutputRootProblem``.
  package func opened() throws(OutputRootProblem) -> OutputRoot {
    let isInPlace: Bool
    do throws(SpoolError) { isInPlace = try root.isInPlace() } catch { throw .missing(error) }
    if !isInPlace { root = try Self.open(location, spool, reach) }
    return root
  }

  /// The file system of the root that was opened last.
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
    let own = try spool.ownDirectories()
    for directory in directories {
      guard !own.contains(where: { $0.isSameFile(as: directory.identity) }) else {
        throw SpoolError(
          call: .open, path: "\(directory.path.display) (a directory of the spool itself)", errno: .improperLink)
      }
    }
  }
}

extension Spool {
  /// The directory of the output roots that jobs may name, each a link to an absolute path. It is optional. Only the
  /// spool's owner can write to it; whoever may drop jobs can choose among its links, and name no other directory.
  static let roots = "roots"

  /// The spool and its directories that contain no payloads.
  func ownDirectories() throws(SpoolError) -> [FileStatus] {
    var found = [try directory.status()]
    let names = Directory.allCases.filter { $0 != .files }.map { Path($0) } + [Path("hooks"), Path(Self.roots)]
    for name in names {
      do throws(SpoolError) { found.append(try system.status(root, name)) } catch
        where error.errno == .noSuchFileOrDirectory
      {
      }
    }
    return found
  }
}

extension OutputRoot {
  /// Whether the path still leads to the directory that is open.
  /// - Throws: ``SpoolError``, ENOENT if the path does not exist.
  func isInPlace() throws(SpoolError) -> Bool {
    // Through a link as well.
    try spool.system.status(base, Path(root.path.bytes + Array("/.".utf8))).isSameFile(as: root.identity)
  }

  /// Why this root must not be published to; nil where it is outside the spool, or in its `files`.
  func misplacement(_ reach: OutputReach = .below) throws(SpoolError) -> String? {
    let name = location.map { escaped($0) } ?? "files"
    let chain = try ancestors(of: root.number)
    // By open directories, so that links and bind mounts do not matter.
    let own = try spool.ownDirectories()
    let isOfSpool = own.contains { $0.isSameFile(as: chain[0]) }
    if reach == .below || isOfSpool, try ancestors(of: spool.root).contains(where: { $0.isSameFile(as: chain[0]) }) {
      return "the output root \(name) contains the spool: a job's output could become a job, or the spool's defaults"
    }
    if isOfSpool {
      return "the output root \(name) is a directory of the spool that is not for payloads"
    }
    guard let index = chain.firstIndex(where: { $0.isSameFile(as: own[0]) }) else { return nil }
    let files = try spool.system.status(spool.root, Path("\(Directory.files.rawValue)/."))
    if files.isSameFile(as: chain[index - 1]) { return nil }
    return "the output root \(name) is inside the spool, where payloads are allowed only in files"
  }

  /// The directory and all above it, from inside to outside.
  private func ancestors(of descriptor: Int32) throws(SpoolError) -> [FileStatus] {
    var path = "."
    var found = [try spool.system.status(descriptor, Path(path))]
    while true {
      path += "/.."
      do throws(SpoolError) {
        let status = try spool.system.status(descriptor, Path(path))
        // The root is its own parent (path_resolution(7)).
        if found[found.count - 1].isSameFile(as: status) { return found }
        found.append(status)
      } catch  where error.errno == .permissionDenied {
        // No output leads through what this user may not search.
        return found
      }
    }
  }
}
